"""What the lab found beside what was planted: estimates, intervals and truths."""

from __future__ import annotations

import pandas as pd
from matplotlib.lines import Line2D

from perflab.errors import AnalysisError
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import draw_interval
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots.ratios import limits
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.lab.resolution import FACTOR, known_effects

ROW_IN = 0.3
# Copies that are all alike show at least this much on both sides of 1.
LEAST = 0.02
EXPERIMENT = "lab_check"
TITLE = "what was planted, and what the lab found"
COLUMNS = ["service", "expected", "estimate", "low", "high"]


def known_effects_table(run: Run) -> pd.DataFrame:
    """Return each service's response against the first copy's, with what was expected of it."""
    try:
        return known_effects(run)[COLUMNS]
    except AnalysisError:
        return pd.DataFrame(columns=COLUMNS)


def has_planted(run: Run) -> bool:
    """Return whether the lab checked itself in a run."""
    return run.record.experiment == EXPERIMENT and FACTOR in run.record.factors


def draw_known_effects(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each service's response against the first copy's, with its truth."""
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.7 + ROW_IN * len(table),
        subtitle="Mean response time against that of copy A1: estimate over all blocks with its "
        "95% interval (an arrow: it goes on). A copy is the same service; the others work longer "
        "by a known share.",
        key=[
            Line2D([], [], color=PALETTE[0], marker="o", ms=5, lw=1.6, label="measured"),
            Line2D([], [], color=INK, marker="|", ms=11, mew=1.6, ls="", label="truth"),
        ],
    )
    axes = figure.subplots()
    places = range(len(table))[::-1]
    axes.axvline(1.0, color=MUTED, lw=0.8)
    within = _shown(table)
    for place, low, high in zip(places, table["low"], table["high"], strict=True):
        draw_interval(axes, (low, high), place, within, color=PALETTE[0], lw=1.6)
    axes.set_xlim(*within)
    axes.plot(table["estimate"], places, "o", ms=5, color=PALETTE[0])
    axes.plot(table["expected"], places, "|", ms=13, mew=1.6, color=INK, zorder=4)
    axes.set_yticks(list(places), [_label(name) for name in table["service"]])
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.set_xlabel("ratio of mean response time")
    only_grid(axes, "x")
    return finish(figure)


def _shown(table: pd.DataFrame) -> tuple[float, float]:
    values = table[["estimate", "expected"]].to_numpy(float).ravel() - 1
    ends = table[["low", "high"]].to_numpy(float).ravel() - 1
    low, high = limits(values, ends, least=LEAST)
    return 1 + low, 1 + high


def _label(service: str) -> str:
    return f"{service} (a copy)" if service.startswith("A") else f"{service} work"


KNOWN_EFFECTS = View(
    "known_effects", TITLE, known_effects_table, draw_known_effects, suits=has_planted
)
