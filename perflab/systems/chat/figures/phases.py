"""How windows of streams appear: one look per phase of a crowd, and one panel per treatment."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.figures.canvas import only_grid
from perflab.figures.looks import Look, looks_of
from perflab.figures.page import Page
from perflab.figures.sheets import Grid
from perflab.figures.theme import MUTED
from perflab.recordings import Run
from perflab.systems.chat.analysis.codec_costs import is_of_codecs
from perflab.systems.chat.analysis.windows import stream_windows

SERVICE = "chat"
# How dark a stretch of time is shaded: colours that light are alike in greyscale.
SHADES = {"ramp": 0.22, "plateau": 0.05, "tail": 0.14}
LOOKS = {
    "ramp": Look("#D55E00", "^", "ramp: users join and begin"),
    "plateau": Look("#0072B2", "o", "plateau: all users act"),
    "tail": Look("#00805D", "s", "tail: users leave"),
}
MOST_PANELS = 4
_known: WeakKeyDictionary[Run, pd.DataFrame] = WeakKeyDictionary()


def of_crowds(run: Run) -> bool:
    """Return whether crowds of users were what a run is of: all runs but those of codecs alone."""
    return not is_of_codecs(run)


def windows(run: Run) -> pd.DataFrame:
    """Return the run's windows of a second; cut once, however many figures show them."""
    if run not in _known:
        _known[run] = stream_windows(run, SERVICE)
    return _known[run]


def shown_windows(run: Run, columns: list[str]) -> pd.DataFrame:
    """Return treatment, phase and ``columns`` of the windows of the treatments with a panel."""
    found = windows(run)[["treatment", "phase", *columns]].dropna()
    return found[found["treatment"].isin([*looks_of(run.record)][:MOST_PANELS])]


def shown_treatments(page: Page, most: int = MOST_PANELS) -> dict[str, Look]:
    """Return the first treatments, as many as there is room for."""
    return dict([*page.looks.items()][:most])


def left_out(page: Page, shown: dict[str, Look]) -> str:
    """Say how many treatments are not shown; empty where all are."""
    every = len(page.looks)
    return f" Shown: the first {len(shown)} of {every} treatments." if len(shown) < every else ""


def grid_of(page: Page, shown: dict[str, Look]) -> Grid:
    """Return how the panels of treatments stand."""
    return page.sheet.grid(len(shown), across=2, least_in=2.0)


def panels(figure: Figure, grid: Grid, x_label: str, y_label: str) -> list[Axes]:
    """Return panels that share their axes, labelled where they end."""
    count, columns = grid.count, grid.across
    drawn = figure.subplots(grid.down, columns, sharex=True, sharey=True, squeeze=False)
    every = list(drawn.ravel())
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


def key(phases: Iterable[str]) -> list[Line2D]:
    """Return a legend's handles for the phases that occur."""
    return [
        Line2D([], [], ls="", marker=look.marker, ms=4.5, mfc=look.color, mec="white", mew=0.3,
               label=look.label)
        for name, look in LOOKS.items()
        if name in set(phases)
    ]  # fmt: skip


def say_nothing(axes: Axes) -> None:
    """Say that a treatment has no window to show, beside others that have.

    The ticks stay: panels that share their axes share them as well.
    """
    only_grid(axes, "y")
    words = "no window of a valid trial"
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=MUTED)
