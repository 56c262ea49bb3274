"""The event loop's delays while the load was busy: those of an idle loop say nothing."""

from __future__ import annotations

import numpy as np

from perflab.load.result import LoadResult
from perflab.load.workload import Scripted, Workload

WINDOWS = 20
BUSY_SHARE = 0.5


def delays_ms(result: LoadResult, workload: Workload) -> np.ndarray:
    """Return the event loop's delays by which a load is judged; one 0 where none was taken.

    Closed and open loops are busy from the first request to the last: all their delays count. Of
    scripted users, only those of the busy part do: a crowd that joins for a minute and acts for
    half of one would hide a plateau with a late loop behind the quiet time before it.
    """
    late_ms = result.loop_delay_ms
    if isinstance(workload.arrivals, Scripted):
        late_ms = late_ms[is_busy(result.loop_delay_at_ns, _recorded_at_ns(result))]
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
