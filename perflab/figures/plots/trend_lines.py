"""An effect over runs: a panel per series, a point per run, and the levels between its changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from perflab.analysis.treatments.trends import Series
from perflab.figures.canvas import LabFigure, blank_canvas, finish, only_grid
from perflab.figures.intervals import ARROW, draw_interval
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots.ratios import LEAST, limits, marks, number
from perflab.figures.sheets import PAGE
from perflab.figures.theme import INK, MUTED, styled
from perflab.figures.words import text_width_in, wrap

PANEL_IN = 2.3
TITLE_LINE_IN = 0.17
TITLE_PT = 8.5
PLOT_IN = PAGE.width_in - 1.0
TICK_PT = 7.0
POINT, LEVEL, CHANGE = PALETTE[0], INK, PALETTE[1]


@styled
def draw_trend(series: Sequence[Series], apart: Mapping[str, str], page: Page) -> LabFigure:
    """Draw one panel below the other; ``apart`` says by question what sets a series apart."""
    titles = [_title(each, apart.get(each.question_id, "")) for each in series]
    lines = sum(map(len, titles))
    figure = blank_canvas(
        f"{page.experiment}: {page.title}",
        page.footer,
        plot_height_in=PANEL_IN * len(series) + TITLE_LINE_IN * lines,
        subtitle="Every point is a run, at equal distances, with its 95% interval over blocks."
        f" Line: the mean of the runs between two changes. {ARROW}",
        key=_key(series),
    )
    panels = figure.subplots(len(series), 1, squeeze=False).ravel()
    for axes, each, title in zip(panels, series, titles, strict=True):
        axes.set_title("\n".join(title), size=TITLE_PT)
        _draw_panel(axes, each)
    return finish(figure)


def _title(series: Series, apart: str) -> list[str]:
    parts = [f"{series.contrast}: {series.said()}", apart]
    return [line for part in parts if part for line in wrap(part, TITLE_PT, PLOT_IN)]


def _draw_panel(axes: Axes, series: Series) -> None:
    table, is_ratio = series.table, series.scale == "ratio"
    values = table["effect"].to_numpy(float)
    within = _scale(axes, series)
    for place, row in enumerate(table.to_dict("records")):
        ends = (float(row["low"]), float(row["high"]))
        draw_interval(axes, ends, place, within, along="y", color=POINT, lw=1.1, alpha=0.7)
    axes.plot(range(len(values)), values, ls="", marker="o", ms=3.6, color=POINT, mec="white",
              mew=0.4, zorder=5)  # fmt: skip
    edges = [0, *(change.place for change in series.changes), len(values)]
    for begin, end in pairwise(edges):
        own = values[begin:end]
        level = math.exp(np.log(own).mean()) if is_ratio else float(own.mean())
        axes.plot([begin - 0.4, end - 0.6], [level, level], color=LEVEL, lw=1.6, zorder=4)
    for change in series.changes:
        axes.axvline(change.place - 0.5, color=CHANGE, lw=1.4, ls=(0, (4, 2)), gid="change")
    axes.set_xlim(-0.7, max(len(values), 6) - 0.3)
    _date_ticks(axes, table)


def _scale(axes: Axes, series: Series) -> tuple[float, float]:
    """Set the axis of the effect, and return how much of an interval it shows."""
    table, is_ratio = series.table, series.scale == "ratio"
    ends = table[["low", "high"]].to_numpy(float).ravel()
    if is_ratio:
        ends = ends[ends > 0]
    on = np.log if is_ratio else np.asarray
    low, high = limits(on(table["effect"].to_numpy(float)), on(ends), math.log(LEAST) if is_ratio
                       else 0.0)  # fmt: skip
    axes.axhline(1.0 if is_ratio else 0.0, color=MUTED, lw=1.0, zorder=1)
    only_grid(axes, "y")
    if not is_ratio:
        axes.set_ylim((low, high) if low < high else (-1.0, 1.0))
        axes.set_ylabel(f"difference, {series.unit}" if series.unit else "difference")
        return axes.get_ylim()
    axes.set_yscale("log")
    axes.set_ylim(math.exp(low), math.exp(high))
    # Numbers at the side need a third of the room that they need below.
    places = marks(math.exp(low), math.exp(high), 3 * PANEL_IN)
    axes.set_yticks(places, [number(each) for each in places])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("ratio (log)")
    return axes.get_ylim()


def _date_ticks(axes: Axes, table: pd.DataFrame) -> None:
    """Write day and commit below the first run of each, as far as there is room."""
    names = [
        f"{row['created_at']:%Y-%m-%d}\n{commit_words(row['commit'], row['dirty'])}"
        for row in table.to_dict("records")
    ]
    first = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    room_in = PLOT_IN / max(len(names), 6)
    shown: list[int] = []
    for place in first:
        wide = max(text_width_in(line, TICK_PT) for line in names[place].split("\n")) + 0.1
        if not shown or (place - shown[-1]) * room_in >= wide:
            shown.append(place)
    axes.set_xticks(shown, [names[place] for place in shown], size=TICK_PT)


def commit_words(commit: str, dirty: bool) -> str:
    """Return a commit as it is told: its first digits, and whether there were changes."""
    return f"{commit[:8] or 'unknown'}{'+changes' if dirty else ''}"


def _key(series: Sequence[Series]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=POINT, marker="o", ms=4, lw=1.1, label="one run"),
        Line2D([], [], color=LEVEL, lw=1.6, label="level"),
    ]
    if any(each.changes for each in series):
        handles.append(Line2D([], [], color=CHANGE, lw=1.4, ls=(0, (4, 2)), label="change"))
    return handles
