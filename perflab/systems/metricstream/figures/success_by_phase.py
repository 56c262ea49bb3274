"""Success of every phase: measured, and what was published of it before and after."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import in_words, trials_shown, typical_rows
from perflab.figures.intervals import draw_interval
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.points import draw_points
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.metricstream.preset import PHASES_TABLE, STUDY
from perflab.systems.metricstream.rungs import PHASES

TITLE = "success by phase, beside what was published"
RESPONSE = "success_share"
TRIAL, TYPICAL, BEFORE, AFTER = "trial", "typical", "published before", "published after"
MEASURES = {"success_before": BEFORE, "success_after": AFTER, "success": AFTER}
COLUMNS = ["what", "treatment", "state", "value", "low", "high", "n"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", "trial")}
MARKS = {BEFORE: ("<", "published before the phase"), AFTER: ("D", "published after it")}
ROOM = 150.0


def success_table(run: Run) -> pd.DataFrame:
    """Return the success of every trial in %, the typical value, and what was published.

    ``typical`` has its 95% interval over the valid trials, ``low`` to ``high``, and their number.
    """
    trials = trials_shown(run)
    if trials.empty or RESPONSE not in trials:
        return pd.DataFrame(columns=COLUMNS)
    points = trials[["treatment", "state"]].assign(what=TRIAL, value=100 * trials[RESPONSE])
    typical = typical_rows(run, RESPONSE).assign(what=TYPICAL)
    typical[["value", "low", "high"]] = 100 * typical[["value", "low", "high"]].astype(float)
    have = {item.levels["rung"]: item.name for item in run.record.treatments}
    shown = [each for each in (points, typical, pd.DataFrame(_published(have))) if len(each)]
    return pd.concat(shown, ignore_index=True).reindex(columns=COLUMNS)


def _published(have: dict[str, str]) -> list[dict[str, Any]]:
    table = published(STUDY)
    own = table[(table["place"] == PHASES_TABLE) & table["measure"].isin(MEASURES)]
    return [
        {"what": MEASURES[row["measure"]], "treatment": have[rung], "value": row["value"]}
        for row in own.to_dict("records")
        if (rung := row["scenario"].partition(":")[0].replace(" ", "_")) in have
    ]


def draw_success(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per treatment: trials, the typical value in numbers, and published marks."""
    known = [MARKS[what] for what in MARKS if what in set(table["what"])]
    typical = table[table["what"] == TYPICAL].to_dict("records")
    said = {str(row["treatment"]): _words(row) for row in typical}
    own_rows = rows.of_looks(page.looks, page.sheet, 0.46, said)
    where = own_rows.either(beside="At the right", above="Above a row")
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="Success here: an answer of 202 within the time-out, of all requests planned."
        " The study does not define its own, and its phases do not chain: its numbers lie beside"
        f" these, and are compared with nothing. {where}: typical value of the valid trials"
        " with its 95% interval (hollow points: refused trials).",
        key=[
            Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label="trial"),
            Line2D([], [], color=INK, marker="|", lw=1.5, label="typical, with its interval"),
            *(
                Line2D([], [], ls="", marker=marker, ms=5, mfc="white", mec=PALETTE[1], label=label)
                for marker, label in known
            ),
        ],
    )
    axes = figure.subplots()
    places = own_rows.frame(axes)
    points = table[table["what"] == TRIAL].assign(
        y=lambda own: own["treatment"].map(places).astype(float) - 0.12
    )
    draw_points(axes, points, "value", "y", "what", LOOKS, s=18)
    for row in typical:
        place = places[row["treatment"]]
        _draw_typical(axes, place + 0.12, row)
        own_rows.say(axes, row["treatment"], 106, place, size=7, linespacing=1.2)
    for row in table[table["what"].isin(MARKS)].to_dict("records"):
        axes.plot([row["value"]], [places[row["treatment"]] + 0.12], ls="", ms=5.5, mfc="white",
                  marker=MARKS[row["what"]][0], mec=PALETTE[1], mew=1.3, zorder=5)  # fmt: skip
    own_rows.rules(axes)
    axes.set_xlim(-2, own_rows.either(beside=ROOM, above=104.0))
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("success, % of the requests that were planned", loc="left")
    only_grid(axes, "x")
    return finish(figure)


def _draw_typical(axes: Axes, at: float, row: dict[Any, Any]) -> None:
    draw_interval(axes, (row["low"], row["high"]), at, (0.0, 100.0), color=INK, lw=1.5, zorder=4)
    axes.plot([row["value"]], [at], marker="|", ms=7, mew=1.5, color=INK, zorder=4)


def _words(row: dict[Any, Any]) -> str:
    return in_words(row, "{:.4g}").replace("\n", " ", 1).replace(" ", "% ", 1)


def has_phases(run: Run) -> bool:
    """Return whether a run has the published phases."""
    rungs = {item.levels.get("rung") for item in run.record.treatments}
    return "connection" in run.record.factors and bool(rungs & set(PHASES))


SUCCESS_BY_PHASE = View("success_by_phase", TITLE, success_table, draw_success, suits=has_phases)
