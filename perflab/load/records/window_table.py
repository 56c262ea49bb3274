"""The windows of a load that have a counted part, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.load.records.result import LoadResult
from perflab.load.workload.windows import BEGIN, COUNTED, END


def window_table(result: LoadResult) -> pd.DataFrame:
    """Return a row per window that has a counted part.

    ``finished`` are all successes until the next window begins, by which CPU time is divided.
    ``carried_over`` are the requests still under way then: they disturb those of the next window.
    """
    assert result.windows is not None
    planned, done, error = (
        np.concatenate([part[name] for part in result.rows])
        for name in ("planned_ns", "done_ns", "error")
    )
    windows = result.windows
    by_planned, by_done, good_done = np.sort(planned), np.sort(done), np.sort(done[error == 0])
    begin, counted, end = windows[:, BEGIN], windows[:, COUNTED], windows[:, END]
    follows = np.append(begin[1:], max(int(end[-1]), int(done.max(initial=0))) + 1)
    table = pd.DataFrame(
        {
            "window": np.arange(len(windows)),
            "begin_ns": begin,
            "counted_ns": counted,
            "end_ns": end,
            "finished": _until(good_done, follows) - _until(good_done, begin),
            "carried_over": np.searchsorted(by_planned, follows) - _until(by_done, follows),
        }
    )
    return table[end > counted].reset_index(drop=True)


def _until(instants: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return how many of the sorted instants are not after each bound."""
    return np.searchsorted(instants, bounds, side="right")
