"""Little's law as a cross-check: the users of a closed loop are all somewhere, all the time."""

from __future__ import annotations

from perflab.load.result import LoadResult
from perflab.load.windows import time_before
from perflab.load.workload import ClosedLoop, Workload
from perflab.recordings.reasons import Reason

# What the record cannot hold: users who leave a moment before the last request is planned.
MAX_OFF = 0.03


def ratio(result: LoadResult, workload: Workload) -> float:
    """Return throughput times (mean response time + think time) over the number of users.

    Between the first and the last measured start all users are active, or in the counted parts of
    their windows, so it must be 1. NaN where
    users do not simply wait and think (open loops, pacing, users still joining or
    with one request each).

    Notes
    -----
    The product is the mean number of users at work, and it is taken as that: of every request, the
    part of its time that lies between these two instants. Rate times mean time of what ended in
    between would differ by what lies across the edges, by a tenth at ten requests a user.
    Source: J. D. C. Little, Operations Research 9(3), 1961.
    """
    arrivals = workload.arrivals
    begin_ns, end_ns = result.begin_ns, result.end_ns
    if not isinstance(arrivals, ClosedLoop) or arrivals.pacing_s or end_ns <= begin_ns:
        return float("nan")
    if result.at_once or arrivals.stages or arrivals.ramp_s > arrivals.warmup_s:
        return float("nan")
    think_ns = round(arrivals.think_time_s * 1e9)
    busy_ns, spans = 0, result.counted
    for rows in result.chunks():
        ended_ns = rows["done_ns"] + think_ns
        busy_ns += int(
            (time_before(ended_ns, spans) - time_before(rows["planned_ns"], spans)).sum()
        )
    return busy_ns / result.counted_ns / arrivals.users


def reasons(result: LoadResult, workload: Workload) -> list[Reason]:
    """Return that the law does not hold, if so."""
    found = ratio(result, workload)
    if not abs(found - 1) > MAX_OFF:
        return []
    text = f"Little's law is off: ratio {found:.2f}, and not 1"
    return [Reason(code="generator.littles_law", side="client", text=text)]
