"""What each window of a load showed, and what it left behind for the next."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.load.result import LoadResult
from perflab.load.windows import BEGIN, COUNTED, END, time_within, window_of

FIELDS = ("planned_ns", "sent_ns", "done_ns", "error")


def window_table(result: LoadResult) -> pd.DataFrame:
    """Return a row per window whose first part was let settle and whose rest counts.

    Returns
    -------
    DataFrame
        ``window``, its instants ``begin_ns``, ``counted_ns`` and ``end_ns``; ``completed``, the
        successes done in the counted part, and ``finished``, all successes until the next window
        begins: what CPU time is divided by;
        ``mean_ms``, the mean response time of the successes planned in the counted part, without
        the pauses of their service;
        ``sent_after``, what was planned in the window and sent after its end; ``in_flight``, what
        had begun and not ended at its end, and ``carried_over``, what of that was still there when
        the next window began (0 after the last): it meets other requests than were wanted.

    A load that had no windows raises ValueError.
    """
    if result.windows is None:
        raise ValueError("the load had no windows: give its arrivals windows=Windows(...)")
    planned, sent, done, error = (
        np.concatenate([part[name] for part in result.rows]) for name in FIELDS
    )
    windows, good = result.windows, error == 0
    by_planned, by_done = np.sort(planned), np.sort(done)
    good_done = np.sort(done[good])
    begin, counted, end = windows[:, BEGIN], windows[:, COUNTED], windows[:, END]
    follows = np.append(begin[1:], max(int(end[-1]), int(done.max(initial=0))) + 1)
    table = pd.DataFrame(
        {
            "window": np.arange(len(windows)),
            "begin_ns": begin,
            "counted_ns": counted,
            "end_ns": end,
            "completed": _until(good_done, end) - _until(good_done, counted),
            "finished": _until(good_done, follows) - _until(good_done, begin),
            "mean_ms": _means_ms(planned[good], done[good], windows, result.pauses),
            "sent_after": _sent_after(planned, sent, windows),
            "in_flight": np.searchsorted(by_planned, end) - _until(by_done, end),
            "carried_over": np.searchsorted(by_planned, follows) - _until(by_done, follows),
        }
    )
    kept: pd.DataFrame = table[end > counted].reset_index(drop=True)
    return kept


def _until(instants: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return how many of some instants, in order, are not after each bound."""
    numbers: np.ndarray = np.searchsorted(instants, bounds, side="right")
    return numbers


def _sent_after(planned: np.ndarray, sent: np.ndarray, windows: np.ndarray) -> np.ndarray:
    own = window_of(planned, windows)
    late = own[(own >= 0) & (sent >= windows[own, END])]
    return np.bincount(late, minlength=len(windows))


def _means_ms(
    planned: np.ndarray, done: np.ndarray, windows: np.ndarray, pauses: np.ndarray
) -> np.ndarray:
    order = np.argsort(planned)
    awake = done - planned - time_within(planned, done, pauses)
    sums = np.concatenate([[0], np.cumsum(awake[order])])
    places = np.searchsorted(planned[order], windows[:, COUNTED:])
    totals, numbers = (each[:, 1] - each[:, 0] for each in (sums[places], places))
    means_ms: np.ndarray = np.full(len(windows), np.nan)
    np.divide(totals / 1e6, numbers, out=means_ms, where=numbers > 0)
    return means_ms
