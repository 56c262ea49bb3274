"""Measure one trial."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from perflab.instruments import Load, Observation, Scene
from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Generator, Progress, StopLoad
from perflab.load.workload import Workload
from perflab.recordings import Reason, Remark, Side
from perflab.stacks.backend import HOST
from perflab.stacks.commands import Interrupted, go_on, never
from perflab.stacks.residents import Residents
from perflab.statistics.in_words import as_share
from perflab.trials import summary
from perflab.trials.cpu_of_others import others_cpu
from perflab.trials.guarded_sensor import GuardedSensor
from perflab.trials.plan import Treatment
from perflab.trials.summary import OnTime

MAX_IDLE_CPU_SHARE = 0.01
# A dead service answers nothing: requests in flight need not wait for their timeout.
GIVE_UP_S = 3.0
CLIENT, LAB = "client", "lab"


@dataclass
class TrialTables:
    """The row and the tables of one trial (None: no such table).

    ``others`` are the tables besides requests and samples, by name; ``services_whole`` says whether
    the next trial can use the services as they are. ``failed_in_pause`` is an example of the
    requests that failed while services of another treatment were paused.
    """

    row: dict[str, Any]
    requests: pd.DataFrame | None = None
    samples: pd.DataFrame | None = None
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    services_whole: bool = True
    failed_in_pause: str = ""


@dataclass
class Bench:
    """What a trial needs: services, load workers, cores, and callbacks.

    ``cooldown_s`` is the rest after each load; ``labels`` go into the environment of processes that
    a trial starts; ``company`` has a generator by treatment, where trials share their time.
    ``warmed`` names the treatments whose load at the start has been sent since services started.
    """

    residents: Residents
    generator: Generator
    placement: Placement
    interrupted: Interrupted = never
    on_progress: Callable[[Progress], None] = lambda _: None
    cooldown_s: float = 0.1
    labels: Mapping[str, str] = field(default_factory=dict)
    company: Mapping[str, Generator] = field(default_factory=dict)
    warmed: set[str] = field(default_factory=set)


@dataclass
class TrialSoFar:
    """The record, samples and sensors of a trial so far: a trial that fails keeps them."""

    result: LoadResult | None = None
    sampler: Sampler | None = None
    sensors: Sequence[GuardedSensor] = ()

    def failed(
        self, row: dict[str, Any], errors: Iterable[PerflabError], losses: Sequence[Reason]
    ) -> TrialTables:
        """Return the failed trial, with the record so far."""
        reasons = [*map(_failure, errors), *losses]
        row = {**row, "reasons": reasons, "state": "failed"}
        tables = TrialTables(row, services_whole=False)
        for guarded in self.sensors:
            try:
                tables.others |= guarded.take(guarded.sensor.left)
            except InstrumentFailed as error:
                reasons.append(_failure(error))
        if self.sampler is not None:
            tables.samples = self.sampler.samples()
        if self.result is not None:
            tables.requests = self.result.requests
            tables.others |= summary.streamed_tables(self.result)
        self.discard()
        return tables

    def discard(self) -> None:
        """Remove the raw rows, once nothing needs them any more."""
        if self.result is not None:
            self.result.discard()


def _failure(error: PerflabError) -> Reason:
    """Return the reason of a failed trial, with the side at fault."""
    kinds: tuple[tuple[type[PerflabError], str, Side], ...] = (
        (LoadError, "load.failed", "client"),
        (ServiceFailed, "service.failed", "server"),
        (InstrumentFailed, "instrument.error", "unknown"),
        (PerflabError, "stack.failed", "unknown"),
    )
    code, side = next((code, side) for kind, code, side in kinds if isinstance(error, kind))
    return Reason(code=code, side=side, text=str(error))


def losses_of(residents: Residents, name: str) -> list[Reason]:
    """Return the reasons against a trial whose services lost processes."""
    return [
        Reason(
            code="service.lost_processes",
            side="server",
            text=f"service '{service}' lost {lost} during the trial: other processes answered "
            "before and after that",
        )
        for service, lost in residents.lost(name).items()
    ]


def measure(bench: Bench, treatment: Treatment, identity: dict[str, Any]) -> TrialTables:
    """Configure, warm up, load, record.

    An error of the stack, of the generator or of an instrument is not raised: the trial has the
    state ``failed`` and the record so far. RunInterrupted and WrongAnswer end the run.
    """
    row = {**identity, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    so_far = TrialSoFar()
    try:
        return _measured(bench, treatment, row, so_far)
    except InstrumentFailed as error:
        return _failed_by_instrument(bench, treatment.name, row, so_far, error)
    except (StackError, LoadError) as error:
        bench.generator.close()
        return so_far.failed(row, [error], losses_of(bench.residents, treatment.name))


def _failed_by_instrument(
    bench: Bench, name: str, row: dict[str, Any], so_far: TrialSoFar, error: InstrumentFailed
) -> TrialTables:
    """Return a trial whose instrument failed; services that lost nothing stay as they are."""
    losses = losses_of(bench.residents, name)
    try:
        bench.residents.check_alive(name)
    except StackError as death:
        return so_far.failed(row, [death, error], losses)
    return replace(so_far.failed(row, [error], losses), services_whole=not losses)


def _measured(
    bench: Bench, treatment: Treatment, row: dict[str, Any], so_far: TrialSoFar
) -> TrialTables:
    prepare(bench, treatment, so_far)
    others_shares = others_cpu(bench.residents, treatment.name)
    load, metered = send(bench, treatment, so_far)
    shares = others_shares()
    bench.residents.check_alive(treatment.name)
    losses = losses_of(bench.residents, treatment.name)
    time.sleep(bench.cooldown_s)
    measure_after(so_far)
    tables = judged(row, treatment, so_far, load, metered, shares, losses)
    so_far.discard()
    return tables


def prepare(bench: Bench, treatment: Treatment, so_far: TrialSoFar) -> None:
    """Activate and reset the treatment's services, and measure before the load."""
    if not bench.generator.pids:
        bench.generator.start()
    residents, name = bench.residents, treatment.name
    residents.activate(name)
    if treatment.at_start is not None and name not in bench.warmed:
        send_beside(bench, treatment, treatment.at_start).discard()
        bench.warmed.add(name)
    residents.reset(name)
    pids = bench.generator.pids
    scene = Scene(
        residents, name, treatment.workload, bench.placement, bench.labels, pids,
        bench.interrupted, send=lambda load: send_beside(bench, treatment, load),
    )  # fmt: skip
    so_far.sensors = [GuardedSensor(instrument, scene) for instrument in treatment.instruments]
    for guarded in so_far.sensors:
        guarded.take(guarded.sensor.before)


def measure_after(so_far: TrialSoFar) -> None:
    """Let all sensors measure after the load."""
    for guarded in so_far.sensors:
        guarded.take(guarded.sensor.after)


def judged(
    row: dict[str, Any],
    treatment: Treatment,
    so_far: TrialSoFar,
    load: Load,
    metered: Sequence[str],
    shares: Mapping[str, float],
    losses: Sequence[Reason],
) -> TrialTables:
    """Return a trial's row and tables, with its reasons and warnings.

    ``metered`` names the processes of sensors whose CPU was sampled.
    """
    checked = check(load.result, treatment.workload)
    load, unmeasured = summary.measured(load)
    reasons = [*losses, *checked.reasons]
    warnings = [*checked.warnings, *unmeasured, *_disturbances(shares)]
    row = row | {
        **summary.load_columns(load.result),
        **summary.selfcheck_columns(checked),
        **_used(load, [*load.services, *metered]),
        **shares,
    }
    tables = dict(summary.streamed_tables(load.result))
    for guarded in so_far.sensors:
        observation = guarded.take(guarded.sensor.observe, load)
        reasons += observation.reasons
        warnings += observation.warnings
        tables |= observation.tables
        _add_columns(row, observation)
    # A reason against the trial need not be a warning, too.
    against = {reason.code for reason in reasons}
    row |= {
        "state": "invalid" if reasons else "valid",
        "reasons": reasons,
        "warnings": [warning for warning in warnings if warning.code not in against],
    }
    return TrialTables(row, load.result.requests, load.samples, tables, not losses)


def _used(load: Load, services: Sequence[str]) -> dict[str, Any]:
    """Return CPU and memory; the lab works for all treatments, also between their windows."""
    begin_ns, end_ns = load.result.window
    lab = OnTime(begin_ns, end_ns, max(0, end_ns - begin_ns))
    of_load = [name for name in services if name != LAB]
    return {
        **summary.service_columns(load.samples, of_load, OnTime.of(load.result)),
        **summary.service_columns(load.samples, [LAB], lab),
    }


def _disturbances(shares: Mapping[str, float]) -> list[Remark]:
    """Return a remark where services that nobody asked used CPU."""
    share = shares["idle_cpu_share"]
    if math.isnan(share) or share <= MAX_IDLE_CPU_SHARE:
        return []
    text = f"services that got no load used {as_share(share, 1)} of a core meanwhile"
    return [Remark(code="stack.idle_cpu", text=text)]


def _add_columns(row: dict[str, Any], observation: Observation) -> None:
    """Add an instrument's columns to a trial's row; refuse columns that are there already."""
    twice = sorted(set(observation.columns) & {*row, "state", "reasons", "warnings"})
    if twice:
        raise ExperimentError(
            f"two instruments, or an instrument and the lab, both measure {', '.join(twice)}; "
            "rename one of the columns"
        )
    row.update(observation.columns)


def send(
    bench: Bench, treatment: Treatment, so_far: TrialSoFar, start_ns: int = 0
) -> tuple[Load, list[str]]:
    """Send the load while all sensors measure; return it, and the names of the sensors' meters.

    ``start_ns`` is the load's planned start (CLOCK_MONOTONIC), 0 for at once.
    """
    residents, name = bench.residents, treatment.name
    active = residents.active(name)
    try:
        meters: dict[str, Meter] = {node: instance.meter() for node, instance in active.items()}
    except OSError:
        residents.check_alive(name)
        raise
    address, allowed = _address(bench, treatment, treatment.workload)
    watch = _Watch(bench, name)
    with _begun(so_far.sensors) as metered:
        so_far.sampler = sampler = Sampler({**meters, **metered}, bench.generator.pids)
        sampler.start()
        try:
            so_far.result = result = bench.generator.run(
                treatment.workload, address, bench.on_progress, watch, allowed, start_ns=start_ns
            )
        finally:
            sampler.stop()
        watch.raise_death()
    services = (*active, CLIENT, LAB)
    return Load(treatment.workload, result, sampler.samples(), services), list(metered)


def _address(bench: Bench, treatment: Treatment, load: Workload) -> tuple[str, tuple[str, ...]]:
    """Return the address for a treatment's load, and the allowed hosts besides loopback."""
    if treatment.target is not None:
        return treatment.target.url, treatment.target.allowed
    port = bench.residents.active(treatment.name)[load.request.node].launch.port
    return f"http://{HOST}:{port}", ()


def send_beside(bench: Bench, treatment: Treatment, load: Workload) -> LoadResult:
    """Send a load besides the trial's own; it ends by the same rules."""
    watch = _Watch(bench, treatment.name)
    address, allowed = _address(bench, treatment, load)
    result = bench.generator.run(load, address, check=watch, allowed=allowed)
    try:
        watch.raise_death()
        # A load may be shorter than the time between two looks.
        bench.residents.check_alive(treatment.name)
    except StackError:
        result.discard()
        raise
    return result


class _Watch:
    """Ends a load where the run is interrupted or a service has died."""

    def __init__(self, bench: Bench, treatment: str) -> None:
        self._bench = bench
        self._treatment = treatment
        self._next_look = time.monotonic() + 1.0
        self._death: StackError | None = None

    def __call__(self) -> None:
        """Raise where the load is to end."""
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
        """Raise the error of a service that has died, if any."""
        if self._death is not None:
            raise self._death


@contextlib.contextmanager
def _begun(sensors: Iterable[GuardedSensor]) -> Iterator[dict[str, Meter]]:
    """Begin all sensors and yield their meters; end every sensor that was begun."""
    meters: dict[str, Meter] = {}
    with contextlib.ExitStack() as ending:
        for guarded in sensors:
            guarded.take(guarded.sensor.begin)
            ending.push(_ending(guarded))
            meters |= guarded.take(guarded.sensor.meters)
        yield meters


def _ending(guarded: GuardedSensor) -> Callable[..., None]:
    """Return a function that ends a sensor; an error that came before is the one to raise."""

    def end(_kind: object, error: BaseException | None, _trace: object) -> None:
        with contextlib.suppress(*([PerflabError] if error is not None else [])):
            guarded.take(guarded.sensor.end)

    return end
