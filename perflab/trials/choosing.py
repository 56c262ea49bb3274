"""Choose the design of a run and the length of its slices by the response times.

Every treatment gets a short load before the first block, and slices are as short as its responses
allow (docs/designs.md): requests in flight at the end of a slice must be able to end in the gap,
and every user must send several times, or the trial measures only how slices begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Workload
from perflab.trials.designs import ENDING_SHARE, GAP_SHARE, LONGEST_MS, Design
from perflab.trials.plan import RunPlan
from perflab.trials.trial import Bench, send_beside

LOOK_S, LOOK_WARMUP_S = 0.5, 0.2
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

    ``response_ms`` is infinite where there was no successful response.
    """

    response_ms: float
    wait_ms: float = 0.0


def choose(bench: Bench, plan: RunPlan, backend: str) -> Design:
    """Return the design of a run whose services are up, by a short load on each treatment."""
    design = chosen(plan.design, measured_paces(bench, plan), backend)
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
        paces[treatment.name] = Pace(_usual_ms(result), _wait_ms(treatment.workload))
        result.discard()
    return paces


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


def _wait_ms(workload: Workload) -> float:
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop):
        return 0.0
    return max(arrivals.think_time_s, arrivals.pacing_s) * 1e3


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
        return Design(
            kind="trials",
            why=f"{text}: slices would have to last {needed_ms:g} ms, and those above "
            f"{MOST_SLICE_MS:g} pair little better than whole trials",
        )
    return Design(kind="slices", slice_ms=min(needed_ms, LONGEST_MS), why=text)
