"""The event loop's delays while the load was busy: those of an idle loop say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.load.looks import TICK_MS
from perflab.load.result import LoadResult
from perflab.load.workload import Scripted, Workload

WINDOWS = 20
BUSY_SHARE = 0.5


@dataclass(frozen=True)
class Delays:
    """How late the event loop was while the load was busy, in ms; one 0 where nobody looked.

    ``looks`` are its wake-ups, one for each: they can be counted as independent. ``ticks`` are all
    ticks, those that a stall swallowed with their own lateness: how late it was over the time.
    """

    looks: np.ndarray
    ticks: np.ndarray

    @property
    def short(self) -> np.ndarray:
        """Return the looks that are no stalls."""
        return self.looks[self.looks < TICK_MS]


def delays(result: LoadResult, workload: Workload) -> Delays:
    """Return the event loop's delays by which a load is judged.

    Closed and open loops are busy from the first request to the last, or in the counted parts of
    their windows: all delays of that time count. Of
    scripted users, only those of the busy part do: a crowd that joins for a minute and acts for
    half of one would hide a plateau with a late loop behind the quiet time before it.
    """
    looks = [(each.woken_ns, each.late_ms) for each in result.judged_looks]
    ticks = [each.ticks for each in result.judged_looks]
    return Delays(_judged(looks, result, workload), _judged(ticks, result, workload))


def _judged(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], result: LoadResult, workload: Workload
) -> np.ndarray:
    at_ns, late_ms = (np.concatenate(each) for each in zip(*parts, strict=True))
    if isinstance(workload.arrivals, Scripted):
        late_ms = late_ms[is_busy(at_ns, _recorded_at_ns(result))]
    return late_ms if len(late_ms) else np.zeros(1)


def is_busy(at_ns: np.ndarray, recorded_at_ns: np.ndarray) -> np.ndarray:
    """Return which instants lie in the busy part of a load, by the records made in it.

    From first to last record the load is cut into 20 equal windows. A window is busy where it
    holds at least half as many records as the fullest one. All busy windows are judged as one
    sample. The worst of them alone would be the largest of several noisy percentiles and refuse
    healthy clients more often than one percentile does; from first to last message would still
    take in the slow growth of a crowd that acts while it joins. A steady load is busy throughout,
    so that it is judged as any other.
    """
    if not len(recorded_at_ns):
        return np.ones(len(at_ns), dtype=bool)
    first, last = int(recorded_at_ns.min()), int(recorded_at_ns.max())
    width_ns = max(1, -(-(last + 1 - first) // WINDOWS))
    counts = np.bincount((recorded_at_ns - first) // width_ns, minlength=WINDOWS)
    full = counts >= BUSY_SHARE * counts.max()
    inside = (at_ns >= first) & (at_ns <= last)
    chosen: np.ndarray = np.zeros(len(at_ns), dtype=bool)
    chosen[inside] = full[(at_ns[inside] - first) // width_ns]
    return chosen


def _recorded_at_ns(result: LoadResult) -> np.ndarray:
    """Return when messages were sent or read; the ends of requests where there were none."""
    if len(result.messages):
        at_ns: np.ndarray = result.messages["at_ns"].to_numpy()
        return at_ns
    return np.concatenate([rows["done_ns"] for rows in result.rows])
