"""Choose the design of a run and the length of its slices by the response times.

Every treatment gets a short load before the first block, and slices are as short as its responses
allow (docs/explanation/designs.md): requests in flight at the end of a slice must be able to end
in the gap, and every user must send several times, or the trial measures only how slices begin.
Where that load shows that the client would be the limit of a closed loop, the run ends before its
first block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perflab.errors import LoadError
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Workload
from perflab.statistics.in_words import as_share
from perflab.trials.designs import ENDING_SHARE, GAP_SHARE, LONGEST_MS, Design
from perflab.trials.plan import RunPlan
from perflab.trials.trial import Bench, send_beside

LOOK_S, LOOK_WARMUP_S = 0.5, 0.2
# More than a valid trial may have: a short load also holds the start of its users.
MAX_CLIENT_SHARE = 0.9
# The percentile of response times; longer responses are marked where a pause meets them.
USUAL_SHARE = 95
# Each user sends at least so often in a slice.
LEAST_CYCLES = 5
# Pausing one service and resuming another takes up to 3 ms with processes, and 26 with Docker.
LEAST_SLICE_MS = {"process": 50.0, "docker": 200.0}
MOST_SLICE_MS = 300.0
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


def choose(bench: Bench, plan: RunPlan, backend: str) -> Design:
    """Return the design of a run whose services are up, by a short load on each treatment.

    Raises LoadError where the client would be the limit.
    """
    paces = measured_paces(bench, plan)
    refuse_busy_client(paces)
    design = chosen(plan.design, paces, backend)
    if plan.fresh_blocks:
        # The first block must meet services as fresh as the other blocks do.
        bench.residents.stop()
        bench.residents.start()
    return design


def measured_paces(bench: Bench, plan: RunPlan) -> dict[str, Pace]:
    """Send every treatment a short load; return the paces by treatment."""
    paces = {}
    for treatment in plan.treatments:
        bench.residents.activate(treatment.name)
        result = send_beside(bench, treatment, shortened(treatment.workload))
        paces[treatment.name] = _pace(result, treatment.workload)
        result.discard()
    return paces


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


def shortened(workload: Workload) -> Workload:
    """Return a trial's load, shortened to find out its pace."""
    whole_s = LOOK_S + LOOK_WARMUP_S
    words = workload.arrivals.model_dump()
    if isinstance(workload.arrivals, ClosedLoop):
        words |= {"duration_s": LOOK_S, "max_duration_s": whole_s}
    else:
        words["stages"] = [{**stage, "duration_s": whole_s} for stage in words["stages"][:1]]
    words["warmup_s"] = LOOK_WARMUP_S
    return Workload.model_validate({**workload.model_dump(), "arrivals": words})


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
    """Return the design of a run, with the reason, from the paces of :func:`measured_paces`.

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
