"""Whether a client that stood still, or was late on the whole, could have moved a printed number.

The rule: had the client never stood still, could the throughput, the mean or a percentile that
trials are compared by be lower (the throughput higher) by more than a tenth? Every stall is held
against every request that was under way in it, so it holds for closed loops too: their users wait
with the client, nothing is sent late, and Little's law is fulfilled by what was measured. A stall
that meets a few requests of many moves none of these numbers, and refuses nothing; what it does to
the maximum and to p99.9 is said beside them (:mod:`perflab.load.times`).
"""

from __future__ import annotations

import numpy as np

from perflab.load.result import LoadResult
from perflab.load.times import MAX_CLIENT_SHARE, Times
from perflab.percentiles import OF_TRIALS
from perflab.recordings.reasons import Reason

# Below it a client that is late on the whole is told beside the numbers, and not refused.
LEAST_MEAN_LATE_MS = 0.2
STALLS, STALLED_TIME, MEAN_DELAY = (
    "generator.stalls", "generator.stalled_time", "generator.mean_delay",
)  # fmt: skip


def stalled_share(result: LoadResult) -> float:
    """Return for which share of the measured time the event loops stood still, over all workers."""
    begin_ns, end_ns = result.counted.T
    length_ns = result.counted_ns * max(1, len(result.looks))
    still_ns = sum(int(looks.stood_still_ns(begin_ns, end_ns).sum()) for looks in result.looks)
    return still_ns / length_ns if length_ns > 0 else 0.0


def reasons(result: LoadResult, times: Times) -> list[Reason]:
    """Return what the client's stalls and its lateness on the whole say against a load."""
    found = {}
    lengths_ns = [np.diff(looks.stalls).ravel() for looks in result.judged_looks]
    lengths_ms = np.concatenate(lengths_ns) / 1e6
    still = f"the client stood still {len(lengths_ms)} times"
    still += f", up to {lengths_ms.max(initial=0):.0f} ms"
    moved = [
        f"{name} of {usual:.2f} ms could be {lower:.2f} ms"
        for name, (usual, lower) in times.without_stalls(OF_TRIALS).items()
        if usual - lower > MAX_CLIENT_SHARE * usual
    ]
    if moved:
        found[STALLS] = f"{still}: without that, {moved[-1]}"
    share = stalled_share(result)
    if share > MAX_CLIENT_SHARE:
        found[STALLED_TIME] = f"{still}, {share:.0%} of the time: it measured its own pauses"
    late_ms, mean_ms = times.mean_late_ms(), _mean_ms(times)
    if late_ms > max(LEAST_MEAN_LATE_MS, MAX_CLIENT_SHARE * mean_ms):
        text = f"the client was late by {late_ms:.2f} ms on the mean"
        found[MEAN_DELAY] = f"{text}, of a mean response time of {mean_ms:.2f} ms"
    return [Reason(code=code, side="client", text=text) for code, text in found.items()]


def _mean_ms(times: Times) -> float:
    return float(times.known.mean()) / 1e6 if len(times.known) else np.inf
