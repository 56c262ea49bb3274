"""One trial: the single place where a measurement happens."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import pandas as pd

from perflab.errors import (
    ExperimentError,
    InstrumentFailed,
    LoadError,
    PerflabError,
    ServiceFailed,
    StackError,
)
from perflab.host.meters import Meter, Sampler
from perflab.host.placing import Placement
from perflab.instruments import Load, Look, Observation, Scene
from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Generator, Progress, StopLoad
from perflab.load.workload import Workload
from perflab.recordings import Reason, Side
from perflab.stacks.backend import HOST
from perflab.stacks.patience import Interrupted, go_on, never
from perflab.stacks.residents import Residents
from perflab.trials import summary
from perflab.trials.plan import Treatment
from perflab.trials.summary import OnTime
from perflab.trials.surroundings import GuardedLook, others_cpu

MAX_PAUSED_CPU_SHARE = 0.01
# A dead service answers nothing: what is under way need not run into its timeout.
GIVE_UP_S = 3.0
CLIENT, LAB = "client", "lab"


@dataclass
class TrialTables:
    """What one trial leaves: its row and its tables (absent ones are None).

    ``others`` are those besides requests and samples, by name; ``services_whole`` says whether the
    next trial can be made with the services as they are.
    """

    row: dict[str, Any]
    requests: pd.DataFrame | None = None
    samples: pd.DataFrame | None = None
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    services_whole: bool = True


@dataclass
class Bench:
    """What a trial is made with: services, load workers, cores, and ears for progress.

    ``interrupted`` is asked during the load; ``on_progress`` gets what is known so far;
    ``cooldown_s`` is the rest after each trial; ``labels`` go into the environment of whatever a
    trial itself starts. ``company`` has a generator for each treatment, by name, where trials share
    their time.
    """

    residents: Residents
    generator: Generator
    placement: Placement
    interrupted: Interrupted = never
    on_progress: Callable[[Progress], None] = lambda _: None
    cooldown_s: float = 0.1
    labels: Mapping[str, str] = field(default_factory=dict)
    company: Mapping[str, Generator] = field(default_factory=dict)


@dataclass
class Kept:
    """What a load has left, as far as it came: a trial that fails does not throw it away."""

    result: LoadResult | None = None
    sampler: Sampler | None = None
    looks: Sequence[Look] = ()

    def failed(
        self, row: dict[str, Any], errors: Iterable[PerflabError], losses: Sequence[Reason]
    ) -> TrialTables:
        """Return a failed trial with what was recorded until then."""
        reasons = [*map(_failure, errors), *losses]
        row = {**row, "reasons": reasons, "state": "failed"}
        tables = TrialTables(row, services_whole=False)
        for look in self.looks:
            try:
                tables.others |= look.left()
            except InstrumentFailed as error:
                reasons.append(_failure(error))
        if self.sampler is not None:
            tables.samples = self.sampler.samples()
        if self.result is not None:
            tables.requests = self.result.requests
            tables.others |= summary.streamed_tables(self.result)
            self.result.discard()
        return tables


def _failure(error: PerflabError) -> Reason:
    """Return why a trial failed, and whose fault it is."""
    kinds: tuple[tuple[type[PerflabError], str, Side], ...] = (
        (LoadError, "load.failed", "client"),
        (ServiceFailed, "service.failed", "server"),
        (InstrumentFailed, "instrument.error", "unknown"),
        (PerflabError, "stack.failed", "unknown"),
    )
    code, side = next((code, side) for kind, code, side in kinds if isinstance(error, kind))
    return Reason(code=code, side=side, text=str(error))


def losses_of(residents: Residents, name: str) -> list[Reason]:
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

    A failure of the stack, of the generator or of an instrument gives a trial of state ``failed``
    with the reason, the service's last log lines and what was recorded until then; it is not
    raised. RunInterrupted and WrongAnswer end the run.
    """
    row = {**identity, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    kept = Kept()
    try:
        return _measured(bench, treatment, row, kept)
    except InstrumentFailed as error:
        return _unseen(bench, treatment.name, row, kept, error)
    except (StackError, LoadError) as error:
        bench.generator.close()
        return kept.failed(row, [error], losses_of(bench.residents, treatment.name))


def _unseen(
    bench: Bench, name: str, row: dict[str, Any], kept: Kept, error: InstrumentFailed
) -> TrialTables:
    """Return a trial whose instrument failed; services that are whole stay as they are."""
    losses = losses_of(bench.residents, name)
    try:
        bench.residents.check_alive(name)
    except StackError as death:
        return kept.failed(row, [death, error], losses)
    return replace(kept.failed(row, [error], losses), services_whole=not losses)


def _measured(bench: Bench, treatment: Treatment, row: dict[str, Any], kept: Kept) -> TrialTables:
    prepare(bench, treatment, kept)
    others_shares = others_cpu(bench.residents, treatment.name)
    load, own = send(bench, treatment, kept)
    shares = others_shares()
    bench.residents.check_alive(treatment.name)
    losses = losses_of(bench.residents, treatment.name)
    time.sleep(bench.cooldown_s)
    look_after(kept)
    return judged(row, treatment, kept, load, own, shares, losses)


def prepare(bench: Bench, treatment: Treatment, kept: Kept) -> None:
    """Let the treatment's services be as its trial wants them, and look at them without load."""
    if not bench.generator.pids:
        bench.generator.start()
    residents, name = bench.residents, treatment.name
    residents.activate(name)
    residents.reset(name)
    pids = bench.generator.pids
    scene = Scene(
        residents, name, treatment.workload, bench.placement, bench.labels, pids,
        bench.interrupted, send=lambda load: send_beside(bench, treatment, load),
    )  # fmt: skip
    kept.looks = [GuardedLook(instrument, scene) for instrument in treatment.instruments]
    for look in kept.looks:
        look.before()


def look_after(kept: Kept) -> None:
    """Look once more at services without load."""
    for look in kept.looks:
        look.after()


def judged(
    row: dict[str, Any],
    treatment: Treatment,
    kept: Kept,
    load: Load,
    own: Sequence[str],
    shares: Mapping[str, float],
    losses: Sequence[Reason],
) -> TrialTables:
    """Return a trial's row and tables, with what speaks against it; ``own`` are looks' meters."""
    found = check(load.result, treatment.workload)
    reasons = [*losses, *found.reasons, *_disturbances(shares)]
    warnings = [*found.warnings]
    row = row | {
        **summary.load_columns(load.result),
        **summary.selfcheck_columns(found),
        **_used(load, [*load.services, *own]),
        **shares,
    }
    tables = dict(summary.streamed_tables(load.result))
    for look in kept.looks:
        seen = look.observe(load)
        reasons += seen.reasons
        warnings += seen.warnings
        tables |= seen.tables
        _add_columns(row, seen)
    # What speaks against the trial need not be told beside it, too.
    against = {reason.code for reason in reasons}
    row |= {
        "state": "invalid" if reasons else "valid",
        "reasons": reasons,
        "warnings": [warning for warning in warnings if warning.code not in against],
    }
    requests = load.result.requests
    # The raw rows are needed no more.
    load.result.discard()
    return TrialTables(row, requests, load.samples, tables, not losses)


def _used(load: Load, services: Sequence[str]) -> dict[str, Any]:
    """Return CPU and memory; the lab is at work for all treatments, also between their windows."""
    result = load.result
    begin_ns, end_ns = result.begin_ns, result.end_ns
    lab = OnTime(begin_ns, end_ns, max(0, end_ns - begin_ns))
    of_load = [name for name in services if name != LAB]
    return {
        **summary.service_columns(load.samples, of_load, OnTime.of(result)),
        **summary.service_columns(load.samples, [LAB], lab),
    }


def _disturbances(shares: Mapping[str, float]) -> list[Reason]:
    """Return that services which should have rested did not."""
    share = shares["paused_cpu_share"]
    if math.isnan(share) or share <= MAX_PAUSED_CPU_SHARE:
        return []
    text = f"paused services used {share:.1%} of a core"
    return [Reason(code="stack.paused_cpu", text=text)]


def _add_columns(row: dict[str, Any], seen: Observation) -> None:
    """Add what an instrument measured to a trial's row; refuse what is measured twice."""
    twice = sorted(set(seen.columns) & {*row, "state", "reasons", "warnings"})
    if twice:
        raise ExperimentError(f"two instruments, or one and the lab, measure {', '.join(twice)}")
    row.update(seen.columns)


def send(
    bench: Bench, treatment: Treatment, kept: Kept, start_ns: int = 0
) -> tuple[Load, list[str]]:
    """Send the load while all look on; return it, and whose CPU was sampled besides services.

    ``start_ns`` is its planned start (CLOCK_MONOTONIC), 0 for at once.
    """
    residents, name = bench.residents, treatment.name
    active = residents.active(name)
    meters: dict[str, Meter] = {node: instance.meter() for node, instance in active.items()}
    address, allowed = _address(bench, treatment, treatment.workload)
    watch = _Watch(bench, name)
    with _begun(kept.looks) as own:
        kept.sampler = sampler = Sampler({**meters, **own}, bench.generator.pids)
        sampler.start()
        try:
            kept.result = result = bench.generator.run(
                treatment.workload, address, bench.on_progress, watch, allowed, start_ns=start_ns
            )
        finally:
            sampler.stop()
        watch.raise_death()
    return Load(result, sampler.samples(), (*active, CLIENT, LAB)), list(own)


def _address(bench: Bench, treatment: Treatment, load: Workload) -> tuple[str, tuple[str, ...]]:
    """Return where a treatment's load goes, and which hosts besides loopback it may go to."""
    if treatment.target is not None:
        return treatment.target.url, treatment.target.allowed
    port = bench.residents.active(treatment.name)[load.request.node].launch.port
    return f"http://{HOST}:{port}", ()


def send_beside(bench: Bench, treatment: Treatment, load: Workload) -> LoadResult:
    """Send a load besides that of a trial; it ends as the trial's own would."""
    watch = _Watch(bench, treatment.name)
    address, allowed = _address(bench, treatment, load)
    result = bench.generator.run(load, address, check=watch, allowed=allowed)
    try:
        watch.raise_death()
    except StackError:
        result.discard()
        raise
    return result


class _Watch:
    """Looks after interruption and dead services while a load is under way."""

    def __init__(self, bench: Bench, treatment: str) -> None:
        self._bench = bench
        self._treatment = treatment
        self._next_look = time.monotonic() + 1.0
        self._death: StackError | None = None

    def __call__(self) -> None:
        """Raise what ends the load."""
        go_on(self._bench.interrupted, "during a trial")
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 1.0
        try:
            self._bench.residents.check_alive(self._treatment)
        except StackError as error:
            self._death = error
            raise StopLoad("a service died", GIVE_UP_S) from None

    def raise_death(self) -> None:
        """Raise how a service ended, if one has."""
        if self._death is not None:
            raise self._death


@contextlib.contextmanager
def _begun(looks: Iterable[Look]) -> Iterator[dict[str, Meter]]:
    """Begin all looks and yield their meters; every one that was begun is ended."""
    meters: dict[str, Meter] = {}
    with contextlib.ExitStack() as ending:
        for look in looks:
            look.begin()
            ending.push(_ending(look))
            meters |= look.meters()
        yield meters


def _ending(look: Look) -> Callable[..., None]:
    """Return what ends a look; where something has failed already, that is what is told."""

    def end(
        kind: type[BaseException] | None,  # noqa: ARG001
        error: BaseException | None,
        trace: TracebackType | None,  # noqa: ARG001
    ) -> None:
        with contextlib.suppress(*([PerflabError] if error is not None else [])):
            look.end()

    return end
