"""The second part of a run: why treatments differ, on the services that are still there.

Nothing of it enters the comparison: its trials lie in folders of their own, as runs of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from perflab.errors import PerflabError
from perflab.instruments import Accounts, Functions, FunctionTimes, Requests
from perflab.instruments.instrument import OfNode
from perflab.load.workload import Arrivals, ClosedLoop, OpenLoop, Scripted, Workload
from perflab.load.workload.workload import StopRules
from perflab.recordings import Run, RunRecord, RunWriter
from perflab.recordings.causes import ALONE, LOADED, PROFILED, folder_of, is_measured
from perflab.recordings.design import Design
from perflab.trials.plan import RunPlan, Treatment, timed
from perflab.trials.progress import Event, Note
from perflab.trials.session import Session, state_of
from perflab.trials.trial import Bench

BLOCKS = {ALONE: 6, LOADED: 4, PROFILED: 4}
TOLD = {
    ALONE: "why: accounts of one user's requests",
    LOADED: "why: accounts under the load of the duel",
    PROFILED: "why: profiles",
}
WARMUP_S, LEAST_S, MOST_S = 0.3, 1.2, 6.0
# So many requests of the slower side fit into a trial.
REQUESTS = 20


def explain(
    plan: RunPlan,
    bench: Bench,
    writer: RunWriter,
    emit: Callable[[Event], None],
    new_record: Callable[[RunPlan], RunRecord],
) -> None:
    """Measure what makes the treatments of a finished run differ.

    Parts that were measured before stay. Whatever goes wrong is told and not raised: the comparison
    is made.
    """
    try:
        trials = Run(writer.path).valid_trials()
        slowest_ms = float(trials["mean_ms"].max()) if "mean_ms" in trials else 0.0
        for part, of_part in parts(plan, min(MOST_S, max(LEAST_S, REQUESTS * slowest_ms / 1e3))):
            folder = folder_of(writer.path, part)
            if is_measured(folder):
                continue
            emit(Note(text=TOLD[part]))
            # What an earlier session left unfinished.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _measure(of_part, bench, RunWriter.begin(folder, new_record(of_part)), emit)
    except Exception as error:
        text = str(error) if isinstance(error, PerflabError | OSError) else repr(error)
        again = f"'perflab duel --resume {writer.record.run_id} --why' looks for it again"
        emit(Note(text=f"why the variants differ is not known: {text}; {again}"))


def _measure(plan: RunPlan, bench: Bench, writer: RunWriter, emit: Callable[[Event], None]) -> None:
    error: BaseException | None = None
    try:
        Session(plan, writer, bench, emit).run(dict.fromkeys(range(plan.blocks), 0))
    except BaseException as raised:
        error = raised
        raise
    finally:
        state, reason = state_of(error)
        writer.update(state=state, reason=reason)


def parts(plan: RunPlan, duration_s: float) -> Iterator[tuple[str, RunPlan]]:
    """Yield the plan of each part by its name."""
    accounts = partial(Accounts, metrics=plan.metrics)
    yield ALONE, _part(plan, ALONE, lambda load: one_at_a_time(load, duration_s), accounts)
    if not all(_is_one_at_a_time(treatment.workload) for treatment in plan.treatments):
        of_node = (accounts, FunctionTimes)
        yield LOADED, _part(plan, LOADED, lambda load: as_in_run(load, duration_s), *of_node)
    yield PROFILED, _part(plan, PROFILED, lambda load: one_at_a_time(load, duration_s), Functions)


def _part(
    plan: RunPlan, part: str, load: Callable[[Workload], Workload], *of_node: Callable[..., OfNode]
) -> RunPlan:
    def changed(treatment: Treatment) -> Treatment:
        node = treatment.workload.request.node
        instruments = (Requests(), *(instrument(node=node) for instrument in of_node))
        update = {
            "workload": load(treatment.workload),
            "instruments": instruments,
            "at_start": None,
        }
        return treatment.model_copy(update=update)

    update: dict[str, Any] = {
        "treatments": tuple(map(changed, plan.treatments)),
        "blocks": BLOCKS[part],
        "until_decided": None,
        "fresh_blocks": 0,
        "finds_warmup": False,
        "design": Design(kind="trials"),
        "contrasts": (),
        "warnings": (),
        "why": False,
    }
    return plan.model_copy(update=update)


def one_at_a_time(load: Workload, duration_s: float) -> Workload:
    """Return the load of one user who waits for each answer."""
    arrivals: Arrivals = ClosedLoop(users=1, duration_s=duration_s, warmup_s=WARMUP_S)
    if isinstance(load.arrivals, Scripted):
        changed = {"users": 1, "warmup_s": WARMUP_S, "duration_s": duration_s}
        arrivals = load.arrivals.model_copy(update=changed)
    update = {"arrivals": arrivals, "stop": StopRules(), "objectives": ()}
    return load.model_copy(update=update)


def _is_one_at_a_time(load: Workload) -> bool:
    return getattr(load.arrivals, "users", 0) == 1


def as_in_run(load: Workload, duration_s: float) -> Workload:
    """Return the load of the run, for a shorter time; at a low rate for enough requests."""
    if isinstance(load.arrivals, OpenLoop):
        rate = max(load.arrivals.stages[0].rate, load.arrivals.stages[0].end_rate)
        duration_s = max(duration_s, min(load.arrivals.counted_s, REQUESTS / rate))
    return timed(load, WARMUP_S, duration_s).model_copy(update={"objectives": ()})
