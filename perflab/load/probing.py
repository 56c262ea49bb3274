"""One step of a capacity search: a load at a level, summed up, checked and judged."""

from __future__ import annotations

from collections.abc import Callable

from perflab.load import report
from perflab.load.capacity import Probe, at_level, judged, rate_of
from perflab.load.result import LoadResult
from perflab.load.selfcheck import check
from perflab.load.workload import ClosedLoop, Workload


def probed(
    send: Callable[[Workload], LoadResult],
    made: Workload,
    level: float,
    duration_s: float,
    warmup_s: float,
) -> Probe:
    """Send a workload at a level and judge it by the workload's objectives.

    Parameters
    ----------
    send : callable
        Sends a load and returns its record, which is thrown away once it is summed up.
    made : Workload
        What is sent at every level; its objectives judge it.
    duration_s, warmup_s : float
        Of this load; see :func:`~perflab.load.capacity.at_level`.
    """
    load = at_level(made, level, duration_s, warmup_s)
    result = send(load)
    try:
        shown = report.summary(result, load, check(result, load))
    finally:
        result.discard()
    if isinstance(load.arrivals, ClosedLoop) and load.arrivals.pacing_s:
        shown["paced_rps"] = rate_of(load, level)
    return judged(level, shown, made.stop.objectives)
