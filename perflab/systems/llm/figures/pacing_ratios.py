"""New over old with and without pacing, and by what factor the one without misleads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.treatments.evaluation import Finding, evaluate
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import ARROW, draw_interval
from perflab.figures.looks import PALETTE, Look
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.ratios import limits, ratio_axis
from perflab.figures.theme import FAINT, INK
from perflab.figures.view import View
from perflab.numerals import number
from perflab.recordings import Run
from perflab.systems.llm.claims import CORES, MEAN, RATE, WORDS

TITLE = "new over old, with and without pacing"
PACED, UNPACED, FACTOR = "constant cycle", "no pacing", "factor between them"
LOOKS = {
    PACED: Look(PALETTE[0], "o", PACED),
    UNPACED: Look(PALETTE[1], "s", UNPACED),
    FACTOR: Look(PALETTE[3], "D", FACTOR),
}
RESPONSES = (RATE, CORES, MEAN)
COLUMNS = ["response", "what", "ratio", "low", "high", "n", "verdict"]
ROW_IN = 0.42
LEAST = 0.1
WIDTH_IN = 3.3


def pacing_table(run: Run) -> pd.DataFrame:
    """Return the ratio new over old by response, in both loads, and the factor between them.

    With 95% intervals, blocks and verdicts as everywhere (:mod:`perflab.analysis`). Requests per
    second have no factor: with a constant cycle the load sets them.
    """
    told = [
        {
            "response": WORDS[each.contrast.response],
            "what": what,
            "ratio": each.effect.estimate,
            "low": each.effect.low,
            "high": each.effect.high,
            "n": each.effect.n,
            "verdict": str(each.verdict),
        }
        for each in evaluate(run)
        if (what := _what(each)) and each.contrast.response in RESPONSES and each.effect
    ]
    return pd.DataFrame(told, columns=COLUMNS)


def _what(finding: Finding) -> str:
    """Return which of the three a finding is; empty of any other."""
    if finding.contrast.interaction is not None:
        return FACTOR if finding.contrast.name.startswith("pacing x") else ""
    named = {"paced_new": PACED, "unpaced_new": UNPACED}
    return named.get(finding.contrast.numerator.get("rung", ""), "")


def draw_pacing(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per response and load, the numbers and the verdict at the right."""
    if not table["ratio"].map(math.isfinite).any():
        return empty_figure(page, TITLE, page.nothing)
    responses = list(table["response"].drop_duplicates())
    shown = sorted(table.to_dict("records"), key=lambda row: (
        responses.index(row["response"]), [*LOOKS].index(row["what"])
    ))  # fmt: skip
    labels = {_name(row): ",\n".join(_name(row)) for row in shown}
    said = {_name(row): f"{_interval(row)}\n{row['verdict']}" for row in shown}
    own_rows = rows.Rows(page.sheet, labels, labels, ROW_IN, ROW_IN, said)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="The same two versions and the same fast model, once with a constant cycle and"
        " once without pacing. Bars: 95% intervals over blocks. The factor is the ratio without"
        f" pacing over the one with it: 1 would say that pacing changes nothing. {ARROW}",
        key=[
            Line2D([], [], color=look.color, marker=look.marker, ms=4.5, lw=1.6, label=look.label)
            for look in LOOKS.values()
        ],
    )
    axes = figure.subplots()
    low, high = limits(
        [math.log(row["ratio"]) for row in shown],
        [math.log(row[end]) for row in shown for end in ("low", "high") if row[end] > 0],
        LEAST,
    )
    within = (math.exp(low), math.exp(high))
    places = own_rows.frame(axes)
    axes.spines["left"].set_visible(own_rows.either(beside=True, above=False))
    for row in shown:
        place = places[_name(row)]
        _draw(axes, place, row, within)
        own_rows.say(axes, _name(row), 1.01, place, size=7,
                     transform=axes.get_yaxis_transform())  # fmt: skip
    axes.axvline(1, color=INK, lw=0.8)
    ratio_axis(axes, *within, width_in=page.sheet.within(WIDTH_IN))
    axes.set_xlabel("new over old (log)")
    only_grid(axes, "x")
    return finish(figure)


def _name(row: Mapping[Hashable, Any]) -> tuple[str, str]:
    return str(row["response"]), str(row["what"])


def _draw(
    axes: Axes, place: float, row: Mapping[Hashable, Any], within: tuple[float, float]
) -> None:
    look = LOOKS[str(row["what"])]
    draw_interval(axes, (row["low"], row["high"]), place, within, color=look.color, lw=1.6)
    axes.plot([row["ratio"]], [place], marker=look.marker, ms=5, color=look.color)
    axes.axhline(place + 0.5, color=FAINT, lw=0.5, zorder=0)


def _interval(row: Mapping[Hashable, Any]) -> str:
    if not math.isfinite(row["low"]):
        return f"{number(row['ratio'])}, n = {row['n']:.0f}"
    between = f"[{number(row['low'])}, {number(row['high'])}]"
    return f"{number(row['ratio'])} {between}, n = {row['n']:.0f}"


def has_both(run: Run) -> bool:
    """Return whether a run has versions with and without pacing."""
    rungs = {item.levels.get("rung") for item in run.record.treatments}
    return {"paced_new", "unpaced_new"} <= rungs


PACING_RATIOS = View("pacing_ratios", TITLE, pacing_table, draw_pacing, suits=has_both)
