"""The proxy's CPU for an answer and for a chunk, a row per treatment."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown, typical_rows
from perflab.figures.intervals import ARROW, draw_interval, reach
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.points import draw_points
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "the proxy's CPU for an answer and for a chunk"
# A response in us, what its panel shows and in which unit, and by what it is divided for that.
PANELS = {
    "server_cpu_us_per_answer": ("ms of CPU per answer", 1e3),
    "server_cpu_us_per_chunk": ("us of CPU per chunk", 1.0),
}
TRIAL, TYPICAL = "trial", "typical"
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}
COLUMNS = ["panel", "what", "treatment", "state", "value", "low", "high"]
BEYOND = 1.5


def cost_table(run: Run) -> pd.DataFrame:
    """Return both costs of every trial, and the typical ones with their 95% intervals.

    A panel's name has its unit: ms for an answer, us for a chunk.
    """
    trials = trials_shown(run)
    parts = []
    for response in (name for name in PANELS if name in trials):
        panel, divisor = PANELS[response]
        points = trials[["treatment", "state"]].assign(value=trials[response] / divisor)
        parts.append(points.assign(panel=panel, what=TRIAL))
        typical = typical_rows(run, response).drop(columns="what")
        numbers = ["value", "low", "high"]
        typical[numbers] = typical[numbers].astype(float) / divisor
        parts.append(typical.assign(panel=panel, what=TYPICAL))
    known = [each.dropna(subset=["value"]) for each in parts]
    known = [each for each in known if len(each)]
    if not known:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(known, ignore_index=True).reindex(columns=COLUMNS)


def draw_costs(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per treatment and a panel per cost."""
    own_rows = rows.of_looks(page.looks, page.sheet, 0.3)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="CPU time of the proxy in the measured stage over its successes, and over their"
        " chunks. Points: trials (hollow: refused); bars: typical value with its 95% interval."
        f" {ARROW} What is not streamed has no chunks.",
        key=[
            Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label=TRIAL),
            Line2D([], [], color=INK, marker="|", lw=1.5, label="typical, with its interval"),
        ],
    )
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (panel, _) in zip(panels, PANELS.values(), strict=True):
        _draw(axes, table[table["panel"] == panel], own_rows)
        axes.set_xlabel(panel)
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, own_rows: rows.Rows[str]) -> None:
    places = own_rows.frame(axes)
    points = own[own["what"] == TRIAL]
    points = points.assign(y=points["treatment"].map(places).astype(float) - 0.12)
    draw_points(axes, points, "value", "y", "what", LOOKS, s=16)
    within = reach(own["value"], BEYOND)
    for row in own[own["what"] == TYPICAL].to_dict("records"):
        at = places[row["treatment"]] + 0.15
        draw_interval(axes, (row["low"], row["high"]), at, within, color=INK, lw=1.4, zorder=4)
        axes.plot([row["value"]], [at], marker="|", ms=7, mew=1.5, color=INK, zorder=4)
    own_rows.rules(axes)
    axes.set_xlim(0, None)
    only_grid(axes, "x")


STREAM_COSTS = View("stream_costs", TITLE, cost_table, draw_costs)
