"""The ladder beside the published table: what succeeded, and how long it took, rung by rung."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.plots.published_marks import (
    OTHER_LOAD,
    PUBLISHED,
    SAME_LOAD,
    draw_published,
    published_key,
)
from perflab.figures.points import draw_points
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.recordings.responses import at_least_column
from perflab.systems.registry.figures.waterfall import has_downloads, is_inside
from perflab.systems.registry.preset import STUDY, published_settings
from perflab.systems.registry.rungs import RUNGS, inside

TITLE = "the ladder beside the published table"
TRIAL, AT_LEAST = "trial", "at least"
TOLD, TOLD_AT_LEAST = "as told", "as told, at least"
# Response: its panel, words, its measure in the results table, what one of its units is here.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    "succeeded": ("succeeded", "succeeded", "successful", 1.0),
    "mean_ms": ("mean_s", "mean, s (log)", "mean_latency", 1e-3),
    "total_duration_s": ("total_duration_s", "total duration, s (log)", "total_duration", 1.0),
}
SCENARIOS = {"step_0": "baseline", "step_3": "optimised"}
# Nobody knows where the published load came from: its numbers stand beside both.
SCENARIOS |= {inside(rung): scenario for rung, scenario in SCENARIOS.items()}
LOOKS = {
    TRIAL: Look(PALETTE[0], "o", "trial"),
    AT_LEAST: Look(PALETTE[0], ">", "trial: at least that"),
    TOLD: Look(PALETTE[1], "s", "load from inside, as the service's own generator counts"),
    TOLD_AT_LEAST: Look(PALETTE[1], ">", "the same: at least that"),
}
COLUMNS = ["panel", "what", "treatment", "state", "value"]


def ladder_table(run: Run) -> pd.DataFrame:
    """Return three responses of every trial by rung, and what was published of them.

    ``what`` is ``trial``, ``at least`` (downloads timed out) or ``published``; with the load from
    inside ``as told`` and ``as told, at least``: nobody but the service's own generator counted.
    Its ``state`` is the trial's, or whether the run has the published load. Times are in seconds.
    """
    trials = trials_shown(run)
    if trials.empty or not {"succeeded", "told_succeeded"} & set(trials):
        return pd.DataFrame(columns=COLUMNS)
    parts = [_of_response(run, trials, response) for response in PANELS]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_response(run: Run, trials: pd.DataFrame, response: str) -> pd.DataFrame:
    from_inside = is_inside(trials)
    parts = [
        _counted(trials[~from_inside], response, response, (TRIAL, AT_LEAST)),
        _counted(trials[from_inside], response, f"told_{response}", (TOLD, TOLD_AT_LEAST)),
        pd.DataFrame(_published(run, response)),
    ]
    return pd.concat([each for each in parts if len(each)], ignore_index=True)


def _counted(
    trials: pd.DataFrame, response: str, column: str, whats: tuple[str, str]
) -> pd.DataFrame:
    """Return the rows of a panel from a column of trials, or from what it is at least."""
    panel, _, _, factor = PANELS[response]
    nothing = pd.Series(np.nan, index=trials.index)
    known = trials.get(column, nothing).astype(float)
    at_least = trials.get(at_least_column(column), nothing).astype(float)
    return pd.DataFrame(
        {
            "panel": panel,
            "what": np.where(known.isna() & at_least.notna(), whats[1], whats[0]),
            "treatment": trials["treatment"],
            "state": trials["state"],
            "value": known.fillna(at_least) * factor,
        }
    )


def _published(run: Run, response: str) -> list[dict[str, Any]]:
    panel, _, measure, factor = PANELS[response]
    stated = published_settings()
    same = all(run.record.parameters.get(name) == value for name, value in stated.items())
    return [
        {
            "panel": panel,
            "what": PUBLISHED,
            "treatment": item.name,
            "state": SAME_LOAD if same else OTHER_LOAD,
            "value": factor * published_value(STUDY, "results table", scenario, measure),
        }
        for item in run.record.treatments
        if (scenario := SCENARIOS.get(item.levels.get("rung", ""))) is not None
    ]


def draw_ladder(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per rung, in the order of the ladder, and a panel per response."""
    page = replace(page, looks=_in_order(page.looks))
    published = table[table["what"] == PUBLISHED]
    own_rows = rows.of_looks(page.looks, page.sheet, 0.34)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="Points: trials (hollow: refused). An arrowhead is a trial in which downloads"
        " timed out: its time is at least that. Published: one run of each, of another machine;"
        " that of step 0 is such a bound, too." + _vouching(table),
        key=[*_key(table), *published_key(published)],
    )
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (panel, words, _, _) in zip(panels, PANELS.values(), strict=True):
        _draw(axes, table[table["panel"] == panel], own_rows, is_log=panel != "succeeded")
        axes.set_xlabel(words)
    return finish(figure)


def _in_order(looks: Mapping[str, Look]) -> dict[str, Look]:
    places = {f"rung={name}": place for place, name in enumerate(RUNGS)}
    ordered = sorted(looks, key=lambda name: places.get(name, len(places)))
    return {name: looks[name] for name in ordered}


def _draw(axes: Axes, own: pd.DataFrame, own_rows: rows.Rows[str], is_log: bool) -> None:
    places = own_rows.frame(axes)
    points = own[own["what"] != PUBLISHED].assign(
        y=own["treatment"].map(places).astype(float) + 0.12
    )
    draw_points(axes, points, "value", "y", "what", LOOKS, s=18)
    draw_published(
        axes,
        own[own["what"] == PUBLISHED],
        "value",
        {name: place - 0.17 for name, place in places.items()},
    )
    own_rows.rules(axes)
    highest = own["value"].max()
    if is_log:
        log_axis(axes, "x")
        # Three panels share the width: numbers at the tens, and at the threes where few are seen.
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 40 * low else (1.0,)))
    elif math.isfinite(highest):
        axes.set_xlim(-0.06 * highest, 1.08 * highest)
    only_grid(axes, "x")


def _vouching(table: pd.DataFrame) -> str:
    """Say whose count it is where the load came from inside."""
    if not {TOLD, TOLD_AT_LEAST} & set(table["what"]):
        return ""
    return " Load from inside: as the service's own generator counts, for which nobody vouches."


def _key(table: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker=look.marker, ms=4, color=look.color, label=look.label)
        for name, look in LOOKS.items()
        if name in set(table["what"])
    ]


DOWNLOAD_LADDER = View("download_ladder", TITLE, ladder_table, draw_ladder, suits=has_downloads)
