"""Which design a run takes, and how long its slices are: by how long responses take.

A slice must be long beside a response. What is under way when it ends has most of the gap to end
in; and every user must have come round some times, or all that is measured is how slices begin. On
the other hand a machine that others use changes its speed within a tenth of a second, so that short
slices pair better (docs/designs.md). So a short load is sent to every treatment before the first
block, and slices are as short as its responses allow. Where they would have to be longer than
``MOST_SLICE_MS``, and nobody asked for slices, whole trials follow one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perflab.errors import LoadError, StackError
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Workload
from perflab.trials.designs import GAP_SHARE, LONGEST_MS, Design
from perflab.trials.plan import RunPlan
from perflab.trials.trial import Bench, send_beside
from perflab.trials.turns import ENDING_SHARE

LOOK_S, LOOK_WARMUP_S = 0.5, 0.2
# Of the responses: those that take longer are told apart where a pause meets them.
USUAL_SHARE = 95
# Users come round so often in a slice.
LEAST_CYCLES = 5
# To pause one service and resume another takes up to 3 ms with processes, and 26 with Docker.
LEAST_SLICE_MS = {"process": 50.0, "docker": 200.0}
MOST_SLICE_MS = 300.0
STEP_MS = 10.0


@dataclass(frozen=True)
class Pace:
    """How long a treatment's responses usually take, and how long its users wait between two.

    ``response_ms`` is infinite where nothing was answered.
    """

    response_ms: float
    wait_ms: float = 0.0


def choose(bench: Bench, plan: RunPlan, backend: str) -> Design:
    """Return the design of a run whose services are there, by a look at each of them."""
    try:
        design, failed = chosen(plan.design, look(bench, plan), backend), False
    except (StackError, LoadError) as error:
        why = f"how long responses take could not be seen: {str(error).splitlines()[0]}"
        design, failed = _unseen(plan.design, why), True
        bench.generator.close()
    if failed or plan.fresh_blocks:
        # The first block is to meet services as fresh as all others do.
        bench.residents.stop()
        bench.residents.start()
    return design


def look(bench: Bench, plan: RunPlan) -> dict[str, Pace]:
    """Send every treatment a short load; return its pace by name."""
    paces = {}
    for treatment in plan.treatments:
        bench.residents.activate(treatment.name)
        result = send_beside(bench, treatment, shortened(treatment.workload))
        paces[treatment.name] = Pace(_usual_ms(result), _wait_ms(treatment.workload))
        result.discard()
    return paces


def shortened(workload: Workload) -> Workload:
    """Return a load like a trial's own, of a length for looking."""
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
    """Return how long slices must be, ms; infinite where a treatment answered nothing."""
    needed = [LEAST_SLICE_MS[backend]]
    for pace in paces:
        ending_ms = pace.response_ms / (GAP_SHARE * ENDING_SHARE)
        needed += [ending_ms, LEAST_CYCLES * (pace.response_ms + pace.wait_ms)]
    longest = max(needed)
    return math.ceil(longest / STEP_MS - 1e-9) * STEP_MS if math.isfinite(longest) else longest


def chosen(asked: Design, paces: Mapping[str, Pace], backend: str) -> Design:
    """Return the design of a run, with the reason, from the paces that :func:`look` found.

    ``asked`` is ``auto``, or slices whose length is left open.
    """
    needed_ms = needed_slice_ms(paces.values(), backend)
    slowest_ms = max(pace.response_ms for pace in paces.values())
    if not math.isfinite(needed_ms):
        return _unseen(asked, "nothing was answered when it was looked at")
    seen = f"{USUAL_SHARE}% of the responses came within {slowest_ms:.3g} ms"
    longest_wait_ms = max(pace.wait_ms for pace in paces.values())
    if longest_wait_ms:
        seen += f", and users wait {longest_wait_ms:g} ms after each"
    if asked.kind == "auto" and needed_ms > MOST_SLICE_MS:
        return Design(
            kind="trials",
            why=f"{seen}: slices would have to last {needed_ms:g} ms, and those above "
            f"{MOST_SLICE_MS:g} pair little better than whole trials",
        )
    return Design(kind="slices", slice_ms=min(needed_ms, LONGEST_MS), why=seen)


def _unseen(asked: Design, why: str) -> Design:
    """Return what is taken where nobody knows how long responses take; slices if asked for."""
    if asked.kind == "auto":
        return Design(kind="trials", why=why)
    return Design(kind="slices", slice_ms=MOST_SLICE_MS, why=why)
