"""One trial: the single place where a measurement happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from perflab.errors import LoadError, PerflabError, ServiceFailed, StackError
from perflab.host.placement import Placement
from perflab.load.generator import Generator
from perflab.load.result import LoadResult
from perflab.load.selfcheck import check
from perflab.load.stopping import Progress, StopLoad
from perflab.recordings import Reason
from perflab.sampling.meters import Meter, ProcessTreeMeter
from perflab.sampling.sampler import Sampler
from perflab.stacks.backend import HOST
from perflab.stacks.patience import Interrupted, go_on, never
from perflab.stacks.residents import Residents
from perflab.systems.chat import streams
from perflab.systems.chat.lost_messages import unstored
from perflab.trials import summary
from perflab.trials.looking_on import PROFILER, Seen, looking_on
from perflab.trials.plan import Treatment
from perflab.trials.surroundings import Surroundings, cpu_of_idle, steal_ns

MAX_PAUSED_CPU_SHARE = 0.01
# A dead service answers nothing: what is under way need not run into its timeout.
GIVE_UP_S = 3.0
STORED_WITHIN_S = 1.0


@dataclass
class TrialTables:
    """What one trial leaves: its row and its tables (absent ones are None).

    ``services_whole`` says whether the next trial can be made with the services as they are.
    """

    row: dict[str, Any]
    requests: pd.DataFrame | None = None
    samples: pd.DataFrame | None = None
    waits: pd.DataFrame | None = None
    messages: pd.DataFrame | None = None
    stacks: pd.DataFrame | None = None
    services_whole: bool = True


@dataclass
class Bench:
    """What a trial is made with: services, load workers, cores, and ears for progress.

    ``interrupted`` is asked during the load; ``before_trial`` is called before each;
    ``on_progress`` gets what is known so far; ``labels`` go into the environment of whatever a
    trial itself starts.
    """

    residents: Residents
    generator: Generator
    placement: Placement
    interrupted: Interrupted = never
    before_trial: Callable[[], None] = lambda: None
    on_progress: Callable[[Progress], None] = lambda _: None
    cooldown_s: float = 0.1
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Kept:
    """What a load has left, as far as it came: a trial that fails does not throw it away."""

    result: LoadResult | None = None
    sampler: Sampler | None = None

    def failed(
        self, row: dict[str, Any], error: PerflabError, others: Iterable[Reason]
    ) -> TrialTables:
        """Return a failed trial with what was recorded until then."""
        row = {**row, "reasons": [_failure(error), *others], "state": "failed"}
        tables = TrialTables(row, services_whole=False)
        if self.sampler is not None:
            tables.samples, tables.waits = self.sampler.samples(), self.sampler.waits()
        if self.result is not None:
            tables.requests = self.result.requests
            tables.messages = streams.message_table(self.result.messages)
            self.result.discard()
        return tables


def _failure(error: PerflabError) -> Reason:
    """Return why a trial failed, and whose fault it is."""
    text = str(error)
    if isinstance(error, LoadError):
        return Reason(code="load.failed", side="client", text=text)
    if isinstance(error, ServiceFailed):
        return Reason(code="service.failed", side="server", text=text)
    return Reason(code="stack.failed", text=text)


def _losses(residents: Residents, name: str) -> list[Reason]:
    """Return what speaks against a trial whose services lost processes."""
    return [
        Reason(
            code="service.lost_processes",
            side="server",
            text=f"service '{service}' lost {lost} during the trial: what answered before and "
            "after is not the same",
        )
        for service, lost in residents.lost(name).items()
    ]


def measure(bench: Bench, treatment: Treatment, identity: dict[str, Any]) -> TrialTables:
    """Configure, warm up, load, record.

    A failure of the stack or of the generator gives a trial of state ``failed`` with the reason,
    the service's last log lines and what was recorded until then; it is not raised.

    Raises
    ------
    RunInterrupted
        The user ended the run during the load.
    """
    row = {**identity, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    kept = _Kept()
    try:
        return _measured(bench, treatment, row, kept)
    except (StackError, LoadError) as error:
        bench.generator.close()
        return kept.failed(row, error, _losses(bench.residents, treatment.name))


def _measured(bench: Bench, treatment: Treatment, row: dict[str, Any], kept: _Kept) -> TrialTables:
    if not bench.generator.pids:
        bench.generator.start()
    residents, name = bench.residents, treatment.name
    residents.activate(name)
    residents.reset(name)
    around = Surroundings()
    around.probe(residents, bench.placement, name)
    paused, steal = cpu_of_idle(residents, name), steal_ns()
    begun_ns = time.monotonic_ns()
    result, sampler, profile = _load(bench, treatment, kept)
    wall_ns = time.monotonic_ns() - begun_ns
    steal_share = (steal_ns() - steal) / wall_ns
    paused_share = (cpu_of_idle(residents, name) - paused) / wall_ns
    residents.check_alive(name)
    losses = _losses(residents, name)
    time.sleep(bench.cooldown_s)
    around.probe(residents, bench.placement, name)
    server_count, expected = _server_count(residents, treatment, result)
    found = check(result, treatment.workload, expected, server_count)
    reasons = [*losses, *found.reasons]
    if paused_share > MAX_PAUSED_CPU_SHARE:
        text = f"paused services used {paused_share:.1%} of a core"
        reasons.append(Reason(code="stack.paused_cpu", text=text))
    samples = sampler.samples()
    services = [*residents.active(name), "client", "lab"]
    seen = streams.look(result.messages, samples, services, _counts(residents, name))
    # Only now: its CPU is no part of what a message costs.
    services += [PROFILER] if profile else []
    reasons += seen.reasons
    row |= {
        **summary.load_columns(result),
        **summary.phase_columns(result.requests),
        **summary.selfcheck_columns(found, seen.table is not None),
        **summary.service_columns(samples, services, result.begin_ns, result.end_ns),
        **around.columns(),
        **seen.row,
        "server_count": server_count,
        "paused_cpu_share": paused_share,
        "steal_share": steal_share,
        "state": "invalid" if reasons else "valid",
        "reasons": reasons,
        **(profile.columns(seen.row.get("messages_delivered", 0)) if profile else {}),
        "warnings": [*found.warnings, *seen.warnings, *(profile.warnings if profile else ())],
    }
    requests = result.requests
    result.discard()
    stacks = profile.stacks if profile else None
    waits = sampler.waits()
    return TrialTables(row, requests, samples, waits, seen.table, stacks, not losses)


def _load(
    bench: Bench, treatment: Treatment, kept: _Kept
) -> tuple[LoadResult, Sampler, Seen | None]:
    residents, name = bench.residents, treatment.name
    active = residents.active(name)
    database = residents.database(name)
    next_look = [time.monotonic() + 1.0]
    died: list[StackError] = []

    def look() -> None:
        go_on(bench.interrupted, "during a trial")
        if time.monotonic() >= next_look[0]:
            next_look[0] = time.monotonic() + 1.0
            try:
                residents.check_alive(name)
            except StackError as error:
                died.append(error)
                raise StopLoad("a service died", GIVE_UP_S) from None

    meters: dict[str, Meter] = {node: instance.meter() for node, instance in active.items()}
    with looking_on(residents, treatment, bench.labels) as profiler:
        if profiler is not None:
            meters[PROFILER] = ProcessTreeMeter(profiler.pid)
        sampler = Sampler(meters, bench.generator.pids, database.waits if database else None)
        kept.sampler = sampler
        sampler.start()
        try:
            port = active[treatment.workload.request.node].launch.port
            kept.result = result = bench.generator.run(
                treatment.workload, f"http://{HOST}:{port}", bench.on_progress, look
            )
        finally:
            sampler.stop()
        if died:
            raise died[0]
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


def _counts(residents: Residents, name: str) -> dict[str, dict[str, Any]]:
    """Return what the services counted, after a while for what waits to be stored."""
    deadline = time.monotonic() + STORED_WITHIN_S
    while True:
        counts = residents.counts(name)
        if not any(map(unstored, counts.values())) or time.monotonic() > deadline:
            return counts
        time.sleep(0.05)
