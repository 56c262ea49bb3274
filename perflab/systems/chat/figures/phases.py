"""How windows of streams appear: one colour per phase of a crowd, and one panel per treatment."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.figures.canvas import only_grid
from perflab.figures.theme import MUTED
from perflab.recordings import Run
from perflab.systems.chat.analysis.windows import stream_windows

SERVICE = "chat"
# How dark a stretch of time is shaded: colours that light are alike in greyscale.
SHADES = {"ramp": 0.22, "plateau": 0.05, "tail": 0.14}
COLORS = {"ramp": "#D55E00", "plateau": "#0072B2", "tail": "#009E73"}
MARKERS = {"ramp": "^", "plateau": "o", "tail": "s"}
WORDS = {
    "ramp": "ramp: users join and begin",
    "plateau": "plateau: all users act",
    "tail": "tail: users leave",
}
MOST_PANELS = 4
TABLE_ROWS = 400
_known: WeakKeyDictionary[Run, pd.DataFrame] = WeakKeyDictionary()


def windows(run: Run) -> pd.DataFrame:
    """Return the run's windows of a second; cut once, however many figures show them."""
    if run not in _known:
        _known[run] = stream_windows(run, SERVICE)
    return _known[run]


def thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Return at most ``TABLE_ROWS`` rows, evenly thinned; figures draw all of them."""
    every = max(1, -(-len(table) // TABLE_ROWS))
    return table.iloc[::every].reset_index(drop=True)


def shown_treatments(run: Run, most: int = MOST_PANELS) -> list[tuple[str, str]]:
    """Return name and label of the first treatments, as many as there is room for."""
    items = run.record.treatments[:most]
    return [(item.name, item.label or item.name) for item in items]


def left_out(run: Run, shown: list[tuple[str, str]]) -> str:
    """Say how many treatments are not shown; empty where all are."""
    every = len(run.record.treatments)
    return f" Shown: the first {len(shown)} of {every} treatments." if len(shown) < every else ""


def panels(figure: Figure, count: int, x_label: str, y_label: str) -> list[Axes]:
    """Return ``count`` panels in two columns that share their axes, labelled where they end."""
    columns = min(2, count)
    grid = figure.subplots(-(-count // columns), columns, sharex=True, sharey=True, squeeze=False)
    every = list(grid.ravel())
    for spare in every[count:]:
        spare.remove()
    for place, axes in enumerate(every[:count]):
        if place % columns == 0:
            axes.set_ylabel(y_label)
        if place + columns >= count:
            axes.set_xlabel(x_label)
            # Above a panel that was removed numbers would be missing.
            axes.tick_params(axis="x", labelbottom=True)
    return every[:count]


def key(phases: set[str]) -> list[Line2D]:
    """Return a legend's handles for the phases that occur."""
    return [
        Line2D([], [], ls="", marker=MARKERS[name], ms=4.5, mfc=color, mec="white", mew=0.3,
               label=WORDS[name])
        for name, color in COLORS.items()
        if name in phases
    ]  # fmt: skip


def scatter(axes: Axes, own: pd.DataFrame, x: pd.Series[float], y: str) -> None:
    """Draw windows in the colours of their phases."""
    for phase, group in own.groupby("phase", sort=False):
        axes.plot(
            x.loc[group.index],
            group[y],
            ls="",
            marker=MARKERS[str(phase)],
            ms=3.2,
            mfc=COLORS[str(phase)],
            mec="white",
            mew=0.3,
            alpha=0.7,
        )


def say_nothing(axes: Axes) -> None:
    """Say that a treatment has no window to show, beside others that have.

    The ticks stay: panels that share their axes share them as well.
    """
    only_grid(axes, "y")
    words = "no window of a valid trial"
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=MUTED)
