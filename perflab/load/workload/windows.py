"""Windows of a load: the only times in which it sends, so that loads can take turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from perflab.load.workload.arrivals import ClosedLoop, OpenLoop

BEGIN, COUNTED, END = range(3)


def instants_of(arrivals: ClosedLoop | OpenLoop, start_ns: int = 0) -> np.ndarray:
    """Return begin, begin of the counted part, and end of each window (int64 ns, 3 columns).

    ``start_ns`` is the load's planned start. The counted part of a window in the warm-up begins at
    the window's end, without a length.
    """
    assert arrivals.windows is not None
    begin, end = np.array([(window.start_s, window.end_s) for window in arrivals.windows.spans]).T
    settled = begin + arrivals.windows.settle_ms / 1e3
    counted = np.where(end <= arrivals.warmup_s, end, settled)
    return np.rint(np.stack([begin, counted, end], axis=1) * 1e9).astype(np.int64) + start_ns


def window_of(instants_ns: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the number of the window (:func:`instants_of`) of each instant; -1: none."""
    latest = np.searchsorted(windows[:, BEGIN], instants_ns, side="right") - 1
    inside = (latest >= 0) & (instants_ns < windows[latest, END])
    return np.where(inside, latest, -1)


def cut_at(windows: np.ndarray, end_ns: int) -> np.ndarray:
    """Return the windows until a load's end; the first stays, if need be without a length."""
    begun = windows[:, BEGIN] < end_ns
    begun[0] = True
    cut: np.ndarray = np.minimum(windows[begun], end_ns)
    return cut


def time_before(instants_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return how much of the spans (begins and ends in order) lies before each instant, in ns."""
    # Relative to the first begin: instants since the machine's start are too coarse as floats.
    origin = spans[0, 0]
    lengths = np.cumsum(spans[:, 1] - spans[:, 0])
    heights = np.stack([np.concatenate([[0], lengths[:-1]]), lengths], axis=1)
    before = np.interp(instants_ns - origin, (spans - origin).ravel(), heights.ravel())
    times_ns: np.ndarray = np.rint(before).astype(np.int64)
    return times_ns


def time_within(since_ns: np.ndarray, until_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return how much of each time from one instant to another lies in the spans, in ns."""
    if not len(spans):
        return np.zeros(len(since_ns), dtype=np.int64)
    times_ns: np.ndarray = time_before(until_ns, spans) - time_before(since_ns, spans)
    return times_ns


def overlapping(since_ns: np.ndarray, until_ns: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return which times, both ends included, share an instant with one of the spans."""
    next_span = np.searchsorted(spans[:, 1], since_ns)
    known = next_span < len(spans)
    shares: np.ndarray = known & (spans[np.where(known, next_span, 0), 0] <= until_ns)
    return shares


@dataclass(frozen=True)
class Cycles:
    """The cycles of users of a closed loop in windows, from which throughput is estimated.

    A user plans again ``think_ns`` after an answer, or ``pacing_ns`` after its last plan.

    Users begin each window together, so that answers come in steps of a round: a counted part of
    40 ms holds seven rounds of 6 ms where 6.67 would be right. By Little's law (J. D. C. Little,
    Operations Research 9, 1961) throughput is users over the mean time from one plan of a user to
    the next. The requests planned in the counted parts, whenever they ended, give that mean without
    bias: their choice does not depend on how long they take.
    """

    users: int
    think_ns: int = 0
    pacing_ns: int = 0

    def requests_in(self, span_ns: int, rows: Iterable[np.ndarray], pauses: np.ndarray) -> float:
        """Return how many requests users make in a time, at the mean cycle of the rows."""
        count, length_ns = 0, 0
        for part in rows:
            planned_ns, done_ns = part["planned_ns"], part["done_ns"]
            awake_ns = done_ns - planned_ns - time_within(planned_ns, done_ns, pauses)
            count += len(part)
            length_ns += int(np.maximum(awake_ns + self.think_ns, self.pacing_ns).sum())
        return self.users * span_ns * count / length_ns if length_ns else 0.0
