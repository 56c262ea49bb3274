"""Throughput, by the one definition of the whole lab: successes done in (begin, end], per second.

In the windows of a closed loop it is an estimate of that for the loop without windows, from how
long requests take (:class:`perflab.load.windows.Cycles`).

A window includes its end and not its begin, so that of windows in a row none counts a success that
its neighbour counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def completed(done_ns: np.ndarray | pd.Series[int], begin_ns: int, end_ns: int) -> int:
    """Return how many of the instants lie in (begin, end]."""
    return int(((done_ns > begin_ns) & (done_ns <= end_ns)).sum())


def completed_in(done_ns: np.ndarray, spans: np.ndarray) -> int:
    """Return how many of the instants lie in one of some (begin, end], shape (spans, 2), in order.

    No two spans may overlap; one may begin where another ends.
    """
    which = np.searchsorted(spans[:, 0], done_ns, side="left") - 1
    return int(((which >= 0) & (done_ns <= spans[which, 1])).sum())


def per_second(count: float, begin_ns: int, end_ns: int) -> float:
    """Return a count as a rate over a window; NaN where that has no length."""
    return count / (end_ns - begin_ns) * 1e9 if end_ns > begin_ns else math.nan
