"""How windows of streams appear: one colour per phase of a crowd, and one panel per treatment."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.streams import stream_windows
from perflab.figures.theme import MUTED
from perflab.recordings import Run

SERVICE = "chat"
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


def shown_treatments(run: Run) -> list[tuple[str, str]]:
    """Return name and label of the first treatments, as many as there is room for."""
    items = run.record.treatments[:MOST_PANELS]
    return [(item.name, item.label or item.name) for item in items]


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
    """Say that there is no window to show."""
    axes.set_xticks([])
    axes.set_yticks([])
    words = "no window of a valid trial"
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=MUTED)
