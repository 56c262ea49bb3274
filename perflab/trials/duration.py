"""How long a run will take, by runs that were measured before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from perflab.load.workload import Burst, ClosedLoop, Workload
from perflab.paths import runs_dir
from perflab.recordings import Run, RunRecord, newest_runs, reference_runs
from perflab.statistics.in_words import counted
from perflab.trials.plan import RunPlan

SECONDS, REQUESTS, TIME_OUT = "seconds", "requests", "seconds until clients give up"


def earlier_runs(experiment: str) -> Iterator[Run]:
    """Yield one's own runs of an experiment, then those that ship; of each, the newest first."""
    yield from newest_runs(experiment, runs_dir())
    yield from reversed(reference_runs(experiment))


def announced(plan: RunPlan, blocks: int, root: Path) -> str:
    """Return in words how long these blocks of a plan will take, and who tells; or nothing.

    The runs that ship were measured on another machine: they tell where no run under ``root`` does.
    """
    by, whole_s = "by earlier runs", expected_s(plan, newest_runs(plan.experiment, root))
    if whole_s is None:
        shipped = reversed(reference_runs(plan.experiment))
        by, whole_s = "on the machine of the reference", expected_s(plan, shipped)
    if not whole_s or not blocks:
        return ""
    most = " at most" if plan.until_decided else ""
    return f"{about(whole_s * blocks / plan.blocks)}{most}, {by}"


def about(seconds: float) -> str:
    """Return a length of time in words: ``about 24 minutes``."""
    for unit, length_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 3 * length_s:
            return f"about {counted(round(seconds / length_s), unit)}"
    return f"about {counted(max(1, round(seconds)), 'second')}"


def expected_s(plan: RunPlan, runs: Iterable[Run]) -> float | None:
    """Return about how many seconds a run takes; None where no earlier run tells.

    That is as long as the earlier run of the experiment that has most treatments in common with it,
    and of these the first of ``runs``; none is read after one that has all. A trial whose load has
    a length is longer by the difference of lengths; one that ends after a number of requests or
    with a time-out is longer in proportion. With fewer requests a trial is taken to be as long:
    services start as slowly for them.
    """
    unit, size = _size([item.workload for item in plan.treatments])
    names = {item.name for item in plan.treatments}
    best: tuple[int, float] | None = None
    for run in runs:
        record = run.record
        if record.experiment != plan.experiment or not (took_s := _seconds_of_a_trial(record)):
            continue
        try:
            unit_then, size_then = _size(_workloads(record))
        except (ValidationError, KeyError):
            continue
        common = len(names & {item.name for item in record.treatments})
        if unit_then == unit and (best is None or common > best[0]):
            longer = size - size_then
            if unit != SECONDS:
                longer = max(0.0, took_s * (size / size_then - 1))
            best = common, max(took_s + longer, 0.0)
            if common == len(names):
                break
    return best[1] * plan.blocks * len(names) if best else None


def _size(workloads: Sequence[Workload]) -> tuple[str, float]:
    """Return the mean size of loads, and its unit: what ends the first of them."""
    sizes = list(map(_size_of, workloads))
    return sizes[0][0], sum(size for _, size in sizes) / len(sizes)


def _size_of(workload: Workload) -> tuple[str, float]:
    arrivals = workload.arrivals
    if isinstance(arrivals, Burst):
        return TIME_OUT, workload.timeout_s
    if isinstance(arrivals, ClosedLoop):
        if not arrivals.duration_s:
            return REQUESTS, arrivals.requests + arrivals.warmup_requests
        return SECONDS, arrivals.warmup_s + arrivals.duration_s
    return SECONDS, workload.bound_s


def _workloads(record: RunRecord) -> list[Workload]:
    parts = [record.whole(item.name)["workload"] for item in record.treatments]
    return [Workload.model_validate(part) for part in parts]


def _seconds_of_a_trial(record: RunRecord) -> float:
    """Return what a trial of a run took with all that is around it; 0 where nothing tells."""
    if record.state != "finished" or len(record.sessions) != 1:
        return 0.0
    began, ended = map(datetime.fromisoformat, (record.created_at, record.finished_at))
    return (ended - began).total_seconds() / (record.blocks * len(record.treatments))
