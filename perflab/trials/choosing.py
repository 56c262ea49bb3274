"""Settle what a run leaves open: its warm-up, its design, and which services are paused.

Every treatment gets a short load before the first block, and slices are as short as its responses
allow (docs/explanation/designs.md): requests in flight at the end of a slice must be able to end
in the gap, and every user must send several times, or the trial measures only how slices begin.
Where that load shows that the client would be the limit of a closed loop, the run ends before its
first block. In slices a service is paused only where it must be, and where that can do no harm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from perflab.analysis.doubts.memory_growth import GROWS_IDLE
from perflab.analysis.noise import STARTING
from perflab.errors import LoadError
from perflab.host.meters import ProcessTable, Reading, Repeated
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Workload
from perflab.recordings import Remark
from perflab.recordings.design import LONGEST_MS, Design
from perflab.stacks.backend import used_by
from perflab.stacks.shared_resources import Held, held_by, in_common
from perflab.statistics.in_words import as_share
from perflab.trials import warming
from perflab.trials.designs import GAP_SHARE
from perflab.trials.plan import RunPlan, timed
from perflab.trials.slices import services_of_each
from perflab.trials.trial import Bench, send_beside
from perflab.trials.turns import ENDING_SHARE
from perflab.trials.warming import MOST_S, mean_ms

SHORT_LOAD_S, SHORT_WARMUP_S = 0.5, 0.2
# More than a valid trial may have: a short load also holds the start of its users.
MAX_CLIENT_SHARE = 0.9
# The percentile of response times; longer responses are marked where a pause meets them.
USUAL_SHARE = 95
# Each user sends at least so often in a slice.
LEAST_CYCLES = 5
# Pausing one service and resuming another takes up to 3 ms with processes, and 26 with Docker.
LEAST_SLICE_MS = {"process": 50.0, "docker": 200.0}
MOST_SLICE_MS = 300.0
# Services rest after the load before it is measured what they use while nobody asks.
REST_S, IDLE_S = 0.3, 1.0
MAX_IDLE_SHARE = 0.02
# After their start many services still work a little.
MAX_START_SHARE = 0.04
MAY_BE_STARTING = ": if it is still starting, it will answer otherwise later (--warmup 20)"
# By more of its memory a second, a service grows while nobody asks.
GROWS_IDLE_PER_S = 0.01
WATCH_S = 0.1
STEP_MS = 10.0


@dataclass(frozen=True)
class Pace:
    """How long a treatment's responses usually take, and how long its users wait between two.

    ``response_ms`` is infinite where there was no successful response. ``client_share`` is how much
    of its cores the client of a closed loop used, at ``rate`` requests a second.
    """

    response_ms: float
    wait_ms: float = 0.0
    client_share: float = 0.0
    rate: float = 0.0


def settle(bench: Bench, plan: RunPlan, backend: str) -> RunPlan:
    """Return the plan of a run whose services are up, with nothing left open.

    Where the plan leaves it open, the warm-up is found first, then the design, by a short load on
    each treatment. Raises LoadError where the client would be the limit.
    """
    held = {treatment.name: Held() for treatment in plan.treatments}
    with _watched(bench, held):
        if plan.finds_warmup:
            remarks = works_after_start(bench, plan)
            warm_up = warming.find(bench, plan)
            plan = plan.warmed(warm_up.seconds, [*remarks, *warm_up.remarks])
            loads = warm_up.loads
        else:
            loads = _short_loads(bench, plan)
    paces = {item.name: _pace(loads[item.name], item.workload) for item in plan.treatments}
    unbroken_ms = {name: mean_ms(result) for name, result in loads.items()}
    for result in loads.values():
        result.discard()
    refuse_busy_client(paces)
    if not plan.design.is_settled:
        design = plan.design
        if not (design.shares_time and design.slice_ms):
            design = chosen(design, paces, backend)
        if design.shares_time:
            paused, awake, remarks = to_pause(bench, plan, held)
            plan = plan.model_copy(
                update={"unbroken_ms": unbroken_ms, "warnings": (*plan.warnings, *remarks)}
            )
            design = design.model_copy(update={"paused": paused})
            if awake and plan.design.kind == "auto":
                # Its work between its turns would count as work for its requests.
                design = Design(kind="trials", why=awake)
        plan = plan.settled(design)
    if plan.fresh_blocks:
        # The first block must meet services as fresh as the other blocks do.
        bench.residents.stop()
        bench.residents.start()
    return plan


def _short_loads(bench: Bench, plan: RunPlan) -> dict[str, LoadResult]:
    """Send every treatment a short load, after its warm-up."""
    loads = {}
    for treatment in plan.treatments:
        bench.residents.activate(treatment.name)
        warmup_s = max(SHORT_WARMUP_S, getattr(treatment.workload.arrivals, "warmup_s", 0.0))
        load = timed(treatment.workload, min(warmup_s, MOST_S), SHORT_LOAD_S)
        loads[treatment.name] = send_beside(bench, treatment, load)
    return loads


@contextmanager
def _watched(bench: Bench, held: Mapping[str, Held]) -> Iterator[None]:
    """Read again and again what services have in hand: many open a database for each request."""

    def read() -> None:
        table = ProcessTable()
        for name, so_far in held.items():
            for instance in bench.residents.active(name).values():
                # One that has ended holds nothing; whoever asks next whether it lives tells why.
                with suppress(OSError):
                    so_far.add(held_by(instance.meter().members(table)))

    reader = Repeated(read, WATCH_S, at_end=True)
    reader.start()
    try:
        yield
    finally:
        reader.stop()


def to_pause(
    bench: Bench, plan: RunPlan, held: Mapping[str, Held]
) -> tuple[tuple[str, ...], str, list[Remark]]:
    """Return the treatments whose own services must not run while others have their turn.

    A service that works while nobody asks takes time from the others. One that has something in
    common with another is never stopped: the other could wait for it. The second is what such a
    service does and shares; empty without one. The remarks tell of all that work: a service that
    is still starting, or fills a cache, will answer otherwise when it is done.
    """
    common, idle = in_common(held), idle_use(bench, plan)
    busy = [name for name, used in idle.items() if used.cpu_share > MAX_IDLE_SHARE]
    awake, remarks = "", []
    shown = {treatment.name: treatment.short for treatment in plan.treatments}
    for name, used in idle.items():
        if used.grows:
            size = f"{used.growth_per_s / 1e6:.2g} MB/s"
            text = f"the memory of {shown[name]} grows by {size} while nobody asks"
            remarks.append(Remark(code=GROWS_IDLE, text=text))
    for name in busy:
        text = f"{shown[name]} uses {as_share(idle[name].cpu_share, 1)} of a core while nobody asks"
        if name in common:
            text = awake = f"{text}, and is not paused because it shares {common[name]}"
        remarks.append(Remark(code="stack.works_idle", text=f"{text}{MAY_BE_STARTING}"))
    return tuple(name for name in busy if name not in common), awake, remarks


def works_after_start(bench: Bench, plan: RunPlan) -> list[Remark]:
    """Return a remark for each treatment whose services work after their start, unasked.

    Where only some do, one side may still be starting, and the answers are doubtful.
    """
    idle = idle_use(bench, plan)
    busy = [item for item in plan.treatments if idle[item.name].cpu_share > MAX_START_SHARE]
    code = STARTING if len(busy) < len(plan.treatments) else "stack.works_after_start"
    return [
        Remark(
            code=code,
            text=f"{treatment.short} uses {as_share(idle[treatment.name].cpu_share, 1)} of a core "
            f"after its start, while nobody asks{MAY_BE_STARTING}",
        )
        for treatment in busy
    ]


@dataclass(frozen=True)
class Idle:
    """What a treatment's own services use while nobody asks: share of a core, and memory."""

    cpu_share: float
    growth_per_s: float
    memory_bytes: int

    @property
    def grows(self) -> bool:
        """Whether their memory grows by more than it may."""
        return self.growth_per_s > GROWS_IDLE_PER_S * self.memory_bytes


def idle_use(bench: Bench, plan: RunPlan) -> dict[str, Idle]:
    """Measure for a second what services use while nobody asks."""
    names = [treatment.name for treatment in plan.treatments]
    services = services_of_each(bench.residents, names)

    def used() -> dict[str, Reading]:
        table = ProcessTable()
        return {name: used_by(of_one, table) for name, of_one in services.items()}

    time.sleep(REST_S)
    began_ns, before = time.monotonic_ns(), used()
    time.sleep(IDLE_S)
    after, lasted_s = used(), (time.monotonic_ns() - began_ns) / 1e9
    return {
        name: Idle(
            (after[name].cpu_ns - before[name].cpu_ns) / 1e9 / lasted_s,
            (after[name].memory_bytes - before[name].memory_bytes) / lasted_s,
            after[name].memory_bytes,
        )
        for name in names
    }


def _pace(result: LoadResult, workload: Workload) -> Pace:
    if not isinstance(workload.arrivals, ClosedLoop):
        return Pace(_usual_ms(result))
    wait_ms = 1e3 * max(workload.arrivals.think_time_s, workload.arrivals.pacing_s)
    share = result.cpu_ns / max(1, result.counted_ns) / result.cores
    return Pace(_usual_ms(result), wait_ms, share, result.throughput_rps)


def refuse_busy_client(paces: Mapping[str, Pace]) -> None:
    """Raise LoadError where a closed loop's client would be the limit: no trial would count."""
    # Where nothing was answered the trials say why.
    answered = [name for name, pace in paces.items() if pace.rate > 0]
    busiest = max(answered, key=lambda name: paces[name].client_share, default="")
    pace = paces.get(busiest, Pace(math.inf))
    if pace.client_share > MAX_CLIENT_SHARE:
        half = f"{pace.rate / 2:.2g}"
        raise LoadError(
            f"the client is the limit, not the service: in a short load on {busiest} it used "
            f"{as_share(pace.client_share)} of its cores at {pace.rate:,.0f} requests/s, so no "
            f"trial would count; ask for a rate below that, such as rate={float(half):.0f} "
            f"(perflab duel --rate {float(half):.0f}), or for requests that take longer"
        )


def _usual_ms(result: LoadResult) -> float:
    good = [rows[rows["error"] == 0] for rows in result.rows]
    times_ns = np.concatenate([rows["done_ns"] - rows["planned_ns"] for rows in good])
    return float(np.percentile(times_ns, USUAL_SHARE)) / 1e6 if len(times_ns) else math.inf


def needed_slice_ms(paces: Iterable[Pace], backend: str) -> float:
    """Return how long slices must be (ms); infinite where a treatment answered nothing."""
    lengths_ms = [LEAST_SLICE_MS[backend]]
    for pace in paces:
        ending_ms = pace.response_ms / (GAP_SHARE * ENDING_SHARE)
        lengths_ms += [ending_ms, LEAST_CYCLES * (pace.response_ms + pace.wait_ms)]
    longest = max(lengths_ms)
    return math.ceil(longest / STEP_MS - 1e-9) * STEP_MS if math.isfinite(longest) else longest


def chosen(open_design: Design, paces: Mapping[str, Pace], backend: str) -> Design:
    """Return the design of a run, with the reason, from the pace of each treatment.

    ``open_design`` is ``auto``, or slices without a length.
    """
    needed_ms = needed_slice_ms(paces.values(), backend)
    slowest_ms = max(pace.response_ms for pace in paces.values())
    if not math.isfinite(needed_ms):
        why = "no request of the first short load was answered"
        if open_design.kind == "auto":
            return Design(kind="trials", why=why)
        return Design(kind="slices", slice_ms=MOST_SLICE_MS, why=why)
    text = f"{USUAL_SHARE}% of the responses came within {slowest_ms:.3g} ms"
    longest_wait_ms = max(pace.wait_ms for pace in paces.values())
    if longest_wait_ms:
        text += f", and users wait {longest_wait_ms:g} ms after each"
    if open_design.kind == "auto" and needed_ms > MOST_SLICE_MS:
        why = f"{text}: too slow to take turns (slices of {needed_ms:g} ms)"
        return Design(kind="trials", why=why)
    return Design(kind="slices", slice_ms=min(needed_ms, LONGEST_MS), why=text)
