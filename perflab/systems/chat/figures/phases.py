"""How windows of streams appear: one look per phase of a crowd, and one panel per treatment."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd

from perflab.figures.charts import Points
from perflab.figures.looks import Look, looks_of
from perflab.figures.page import Page
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
WINDOW = "window"
# What a panel says whose treatment has no window.
EMPTY = "no window of a valid trial"
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


def left_out(page: Page, most: int = MOST_PANELS) -> str:
    """Say how many treatments are not shown; empty where all are."""
    every = len(page.looks)
    return f" Shown: the first {most} of {every} treatments." if most < every else ""


def points(**how: Any) -> Points:
    """Return the layer of windows, in the looks of their phases."""
    return Points((WINDOW,), by="phase", looks=LOOKS, how=how)
