"""One trial: the single place where a measurement happens."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from perflab.errors import LoadError, RunInterrupted, StackError
from perflab.host.placement import Placement
from perflab.host.speed import cpu_probe_ms
from perflab.load.generator import Generator
from perflab.load.result import LoadResult
from perflab.load.selfcheck import check
from perflab.load.stopping import Progress
from perflab.sampling.meters import Meter, ProcessTable, ProcessTreeMeter, core_times
from perflab.sampling.sampler import Sampler
from perflab.stacks.backend import HOST
from perflab.stacks.residents import Residents
from perflab.trials import streams, summary
from perflab.trials.looking_on import PROFILER, Seen, looking_on
from perflab.trials.plan import Treatment

MAX_PAUSED_CPU_SHARE = 0.01


@dataclass
class TrialTables:
    """What one trial leaves: its row and its tables (absent ones are None)."""

    row: dict[str, Any]
    requests: pd.DataFrame | None = None
    samples: pd.DataFrame | None = None
    waits: pd.DataFrame | None = None
    messages: pd.DataFrame | None = None
    stacks: pd.DataFrame | None = None


@dataclass
class Bench:
    """What a trial is made with: services, load workers, cores, and ears for progress.

    ``interrupted`` is asked during the load; ``on_progress`` gets what is known so far;
    ``labels`` go into the environment of whatever a trial itself starts.
    """

    residents: Residents
    generator: Generator
    placement: Placement
    interrupted: Callable[[], bool] = lambda: False
    on_progress: Callable[[Progress], None] = lambda _: None
    cooldown_s: float = 0.1
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Surroundings:
    """Measured right before and after the load, with the services idle."""

    flush_us: list[float] = field(default_factory=list)
    cpu_probe_ms: list[float] = field(default_factory=list)


def measure(bench: Bench, treatment: Treatment, identity: dict[str, Any]) -> TrialTables:
    """Configure, warm up, load, record.

    A failure of the stack or of the generator gives a trial of state ``failed`` with the reason
    and the service's last log lines; it is not raised.

    Raises
    ------
    RunInterrupted
        The user ended the run during the load.
    """
    row = {**identity, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    try:
        return _measured(bench, treatment, row)
    except (StackError, LoadError) as error:
        bench.generator.close()
        return TrialTables(row={**row, "state": "failed", "reasons": [str(error)]})


def _measured(bench: Bench, treatment: Treatment, row: dict[str, Any]) -> TrialTables:
    if not bench.generator.pids:
        bench.generator.start()
    residents, name = bench.residents, treatment.name
    residents.activate(name)
    residents.reset(name)
    around = _Surroundings()
    _probe(bench, name, around)
    paused = _cpu_of_idle(residents, name)
    steal = _steal_ns()
    begun_ns = time.monotonic_ns()
    result, sampler, profile = _load(bench, treatment)
    wall_ns = time.monotonic_ns() - begun_ns
    steal_share = (_steal_ns() - steal) / wall_ns
    paused_share = (_cpu_of_idle(residents, name) - paused) / wall_ns
    residents.check_alive(name)
    time.sleep(bench.cooldown_s)
    _probe(bench, name, around)
    server_count, expected = _server_count(residents, treatment, result)
    found = check(result, treatment.workload, expected, server_count)
    reasons = list(found.reasons)
    if paused_share > MAX_PAUSED_CPU_SHARE:
        reasons.append(f"paused services used {paused_share:.1%} of a core")
    samples = sampler.samples()
    services = [*residents.active(name), "client", "lab"]
    seen = streams.look(result.messages, samples, services, residents.counts(name))
    # Only now: its CPU is no part of what a message costs.
    services += [PROFILER] if profile else []
    reasons += seen.reasons
    row |= {
        **summary.load_columns(result),
        **summary.phase_columns(result.requests),
        **summary.selfcheck_columns(found),
        **summary.service_columns(samples, services, result.begin_ns, result.end_ns),
        **summary.flush_columns(around.flush_us),
        **seen.row,
        "server_count": server_count,
        "paused_cpu_share": paused_share,
        "steal_share": steal_share,
        "cpu_probe_ms": sum(around.cpu_probe_ms) / len(around.cpu_probe_ms),
        "state": "invalid" if reasons else "valid",
        "reasons": reasons,
        **(profile.columns(seen.row.get("messages_delivered", 0)) if profile else {}),
        "warnings": [*found.warnings, *seen.warnings, *(profile.warnings if profile else ())],
    }
    requests = result.requests
    result.discard()
    stacks = profile.stacks if profile else None
    return TrialTables(row, requests, samples, sampler.waits(), seen.table, stacks)


def _probe(bench: Bench, name: str, around: _Surroundings) -> None:
    """Measure the speed of the services' core and the flush cost of the database's disk."""
    around.cpu_probe_ms.append(cpu_probe_ms(bench.placement.services))
    node = bench.residents.plans[name].database
    if not node:
        return
    instance = bench.residents.instance(name, node)
    command = instance.launch.spec.probes.get("flush")
    if command:
        around.flush_us.extend(json.loads(instance.run(command))["flush_us"])


def _load(bench: Bench, treatment: Treatment) -> tuple[LoadResult, Sampler, Seen | None]:
    residents, name = bench.residents, treatment.name
    active = residents.active(name)
    database = residents.database(name)
    next_look = [time.monotonic() + 1.0]

    def look() -> None:
        if bench.interrupted():
            raise RunInterrupted("the run was interrupted during a trial")
        if time.monotonic() >= next_look[0]:
            next_look[0] = time.monotonic() + 1.0
            residents.check_alive(name)

    meters: dict[str, Meter] = {node: instance.meter() for node, instance in active.items()}
    with looking_on(residents, treatment, bench.labels) as profiler:
        if profiler is not None:
            meters[PROFILER] = ProcessTreeMeter(profiler.pid)
        sampler = Sampler(meters, bench.generator.pids, database.waits if database else None)
        sampler.start()
        try:
            port = active[treatment.workload.request.node].launch.port
            result = bench.generator.run(
                treatment.workload, f"http://{HOST}:{port}", bench.on_progress, look
            )
        finally:
            sampler.stop()
        wanted = treatment.profiling
        return result, sampler, Seen.by(profiler, wanted) if profiler and wanted else None


def _server_count(
    residents: Residents, treatment: Treatment, result: LoadResult
) -> tuple[int, int]:
    """Return the server's own count of writes and what the client was told (-1 without one)."""
    database = residents.database(treatment.name)
    statement = residents.plans[treatment.name].count_sql
    if database is None or not statement:
        return -1, -1
    acknowledged = int((result.requests["error"] == "").sum())
    return database.count(statement), acknowledged


def _cpu_of_idle(residents: Residents, name: str) -> int:
    table = ProcessTable()
    total = 0
    for instance in residents.idle(name).values():
        with contextlib.suppress(OSError):
            reading = instance.meter().read(table)
            total += reading.cpu_ns if reading else 0
    return total


def _steal_ns() -> int:
    return sum(times.steal_ns for times in core_times().values())
