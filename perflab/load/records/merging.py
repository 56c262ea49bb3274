"""The record of one load, from the rows and reports of its workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from perflab.load.checks.machine_counts import MachineCounts
from perflab.load.records.looks import FailureStop, Looks, mark
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import ClosedLoop, OpenLoop
from perflab.load.workload.schedule import active, instants_of
from perflab.load.workload.windows import Cycles, cut_at
from perflab.load.workload.workload import Workload


def merged(
    folder: Path,
    reports: list[dict[str, Any]],
    workload: Workload,
    before: MachineCounts,
    start_ns: int,
) -> LoadResult:
    """Return the record of a load whose workers have reported, with a folder and report each.

    ``before`` was taken before anything was sent; windows count from the planned start.
    """
    after = MachineCounts.now(before.cores)
    wall_ns = sum(report["wall_ns"] for report in reports)
    # Workers beyond the number of users have nothing to do.
    busy = reports[: getattr(workload.arrivals, "users", len(reports))]
    first_errors: dict[tuple[str, int], str] = {}
    for report in reports:
        for kind, status, text in report["first_errors"]:
            first_errors.setdefault((kind, status), text)
    stopped = next((report["stopped"] for report in reports if report["stopped"]), "")
    failure_stop = failure_stop_of(folder, reports, workload, stopped)
    windows = None
    if isinstance(workload.arrivals, (ClosedLoop, OpenLoop)) and workload.arrivals.windows:
        windows = instants_of(workload.arrivals, start_ns)
        if failure_stop:
            windows = cut_at(windows, failure_stop.at_ns)
        elif stopped:
            windows = cut_at(windows, start_ns + min(report["lasted_ns"] for report in busy))
    result = LoadResult(
        folder=folder,
        workers=len(reports),
        cpu_ns=sum(report["cpu_ns"] for report in reports),
        looks=[Looks.of(report["looks"]) for report in reports],
        run_delay_share=sum(report["run_delay_ns"] for report in reports) / max(1, wall_ns),
        unsent=sum(report["unsent"] for report in reports),
        lasted_s=min(report["lasted_ns"] for report in busy) / 1e9,
        first_errors=first_errors,
        capped=sum(report["capped"] for report in reports),
        stopped=workload.stop.failures_reached if failure_stop else stopped,
        failure_stop=failure_stop,
        clock_step_ms=max((report["clock_step_ms"] for report in reports), key=abs),
        real_time=all(report["real_time"] for report in reports),
        cores=len(before.cores),
        steal_share=before.stolen_until(after),
        kernel=before.counted_until(after),
        windows=windows,
        cycles=_cycles(workload),
    )
    # With fewer than two measured starts there is no time of which CPU could be a share.
    return result if result.end_ns > result.begin_ns else replace(result, cpu_ns=0)


def _cycles(workload: Workload) -> Cycles | None:
    """Return the cycles of users in the windows of a closed loop; None for other loads."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop) or arrivals.windows is None:
        return None
    think_ns, pacing_ns = (round(s * 1e9) for s in (arrivals.think_time_s, arrivals.pacing_s))
    return Cycles(arrivals.users, think_ns, pacing_ns)


def failure_stop_of(
    folder: Path, reports: list[dict[str, Any]], workload: Workload, stopped: str
) -> FailureStop | None:
    """Return the stop of a load by its number of failures, and mark the later rows.

    Failures while a load ends for another reason did not end it.
    """
    failures = workload.stop.failures
    if not failures or stopped not in ("", workload.stop.failures_reached):
        return None
    at_ns = mark(folder, len(reports), failures)
    if not at_ns:
        return None
    since_ns = at_ns - min(report["start_ns"] for report in reports)
    return FailureStop(failures, at_ns, since_ns / 1e9, active(workload.arrivals, since_ns))
