"""Where a profiled service spends its time: a bar per function and treatment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.analysis.trials.profiles import function_shares, profiled
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import ARROW, draw_interval
from perflab.figures.page import Page
from perflab.figures.plots.rows import LABEL_WIDTH_IN, Rows
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run

TITLE = "where the time goes, by function"
SHOWN = 10
BAR_IN, HIGH, WORDS_IN = 0.17, 0.8, 1.3


def draw_profile(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the functions that take most time, the largest on top."""
    names = [name for name in page.looks if name in set(table["treatment"])]
    trials = table.groupby("treatment")["trials"].first()
    picture_in = BAR_IN * len(names) + 0.1
    own = _rows(list(dict.fromkeys(table["function"])), page, picture_in)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own.height_in,
        subtitle="Share of the profiler's looks that found a thread inside the function itself,"
        " not in one that it called; mean over valid trials with its 95% interval. The functions"
        f" with the largest shares are shown. {ARROW}",
        key=[
            Patch(fc=page.looks[name].color, label=f"{page.looks[name].label}, n = {trials[name]}")
            for name in names
        ],
    )
    axes = figure.subplots()
    places = own.frame(axes)
    own.rules(axes)
    longest = float(table["percent"].max())
    axes.set_xlim(0, longest * own.plot_in / (own.plot_in - WORDS_IN))
    offsets = (np.arange(len(names)) + 0.5) / len(names) * HIGH - HIGH / 2
    for row in table.to_dict("records"):
        look = page.looks[row["treatment"]]
        y = places[row["function"]] + float(offsets[names.index(row["treatment"])])
        shares = (float(row["percent"]), float(row["low"]), float(row["high"]))
        _bar(axes, y, HIGH / len(names), shares, look.color)
    axes.set_xlabel("% of the time")
    only_grid(axes, "x")
    return finish(figure)


def _rows(functions: Sequence[str], page: Page, picture_in: float) -> Rows[str]:
    labels = {name: name for name in functions}
    beside = {name: tick_label(name, LABEL_WIDTH_IN) for name in functions}
    lines = max(label.count("\n") + 1 for label in beside.values())
    return Rows(page.sheet, labels, beside, picture_in, max(picture_in, 0.155 * lines + 0.1))


def _bar(
    axes: Axes, y: float, height: float, shares: tuple[float, float, float], color: str
) -> None:
    """Draw a share with its interval, and write both behind it."""
    percent, low, high = shares
    last = axes.get_xlim()[1]
    axes.barh(y, percent, height=height * 0.86, color=color, edgecolor=MUTED, lw=0.3)
    draw_interval(axes, (low, high), y, (0.0, last), color=INK, lw=1.1, zorder=4, gid="interval")
    words, right = f"{percent:.1f}", percent
    if math.isfinite(low):
        words, right = f"{words} [{low:.1f}, {high:.1f}]", min(max(percent, high), last)
    axes.text(right + 0.01 * last, y, words, size=7, va="center")


def profile_table(run: Run) -> pd.DataFrame:
    """Return the functions that take most time, in percent of it, by treatment (long form)."""
    return function_shares(run, SHOWN)


PROFILE = View("profile", TITLE, profile_table, draw_profile, suits=lambda run: bool(profiled(run)))
