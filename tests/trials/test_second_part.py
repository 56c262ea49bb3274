"""The part of a run that says why: whatever happens in it, the comparison stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import LoadError, PerflabError
from perflab.host.placing import placement
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Scripted, Stage, Workload
from perflab.recordings import Run, RunRecord, RunWriter
from perflab.recordings.causes import (
    ALONE,
    LOADED,
    PROFILED,
    folder_of,
    is_explained,
    part_of,
)
from perflab.trials.causes import WARMUP_S, explain, one_at_a_time, parts
from perflab.trials.conductor import new_record
from perflab.trials.plan import RunPlan
from perflab.trials.progress import Note
from tests.trials.fakes import BACKEND, Told, plan


def record_of(of: RunPlan) -> RunRecord:
    return new_record(of, BACKEND, placement())


@pytest.mark.parametrize("error", [ValueError("planted"), LoadError("planted")])
@pytest.mark.promise
def test_an_error_in_it_is_told_and_the_run_is_what_it_was(
    tmp_path: Path, error: Exception
) -> None:
    session = Told(tmp_path)
    before = session.go().trials()

    def fails(_: RunPlan) -> RunRecord:
        raise error

    explain(session.plan, session.bench, session.writer, session.events.append, fails)
    shown = str(error) if isinstance(error, PerflabError) else repr(error)
    last = session.of(Note)[-1].text
    assert last.startswith(f"why the variants differ is not known: {shown}; 'perflab duel --resume")
    assert Run(session.writer.path).trials().equals(before)


def test_trials_that_fail_in_it_are_in_its_own_folder(tmp_path: Path) -> None:
    session = Told(tmp_path)
    before = session.go().trials()
    # The fake services have nothing that accounts could read.
    explain(session.plan, session.bench, session.writer, session.events.append, record_of)
    run = Run(session.writer.path)
    assert run.trials()["trial_id"].tolist() == before["trial_id"].tolist()
    part = part_of(run, ALONE)
    assert part is not None
    assert set(part.trials()["state"]) == {"failed"}


@pytest.mark.promise
def test_a_part_that_was_interrupted_is_measured_again_and_the_others_stay(tmp_path: Path) -> None:
    session = Told(tmp_path)
    session.go()
    emit = session.events.append
    explain(session.plan, session.bench, session.writer, emit, record_of)
    run = Run(session.writer.path)
    assert is_explained(run)
    ids = {name: of_part(run, name).run_id for name in (ALONE, LOADED, PROFILED)}
    RunWriter.reopen(folder_of(run.path, PROFILED)).update(state="interrupted")
    assert not is_explained(run)
    explain(session.plan, session.bench, session.writer, emit, record_of)
    assert is_explained(run)
    same = [name for name, run_id in ids.items() if of_part(run, name).run_id == run_id]
    assert same == [ALONE, LOADED]


def of_part(run: Run, name: str) -> Run:
    part = part_of(run, name)
    assert part is not None
    return part


def test_requests_come_one_at_a_time_and_then_as_in_the_run() -> None:
    found = dict(parts(plan(), duration_s=2.0))
    assert [*found] == [ALONE, LOADED, PROFILED]
    users = {name: {load.users for load in closed(of)} for name, of in found.items()}
    assert users == {ALONE: {1}, LOADED: {5}, PROFILED: {1}}
    assert all(of.fresh_blocks == 0 and not of.contrasts for of in found.values())


def closed(of: RunPlan) -> list[ClosedLoop]:
    loads = [item.workload.arrivals for item in of.treatments]
    assert all(isinstance(load, ClosedLoop) for load in loads)
    return [load for load in loads if isinstance(load, ClosedLoop)]


def under(arrivals: ClosedLoop | OpenLoop) -> RunPlan:
    one = plan()
    loads = [item.workload.model_copy(update={"arrivals": arrivals}) for item in one.treatments]
    treatments = tuple(
        item.model_copy(update={"workload": load})
        for item, load in zip(one.treatments, loads, strict=True)
    )
    return one.model_copy(update={"treatments": treatments})


def test_a_run_whose_requests_come_one_at_a_time_has_no_part_for_its_load() -> None:
    alone = under(ClosedLoop(users=1, duration_s=1.0))
    assert [name for name, _ in parts(alone, 2.0)] == [ALONE, PROFILED]
    open_loop = under(OpenLoop(stages=(Stage(rate=50, duration_s=1.0),)))
    assert [name for name, _ in parts(open_loop, 2.0)] == [ALONE, LOADED, PROFILED]


@pytest.mark.parametrize(
    "arrivals",
    [
        ClosedLoop(users=5, duration_s=600.0, warmup_s=10.0, max_duration_s=610.0),
        OpenLoop(stages=(Stage(rate=50, duration_s=610.0),), warmup_s=10.0),
        OpenLoop(stages=(Stage(rate=4, duration_s=610.0),), warmup_s=10.0),
        OpenLoop(stages=(Stage(rate=0.5, duration_s=13.0),), warmup_s=10.0),
    ],
    ids=["closed", "open", "slow", "slow and short"],
)
def test_the_load_of_a_long_run_is_sent_for_a_short_time(
    arrivals: ClosedLoop | OpenLoop, request: pytest.FixtureRequest
) -> None:
    # At a low rate it takes longer until there are enough requests.
    counted_s = {"slow": 5.0, "slow and short": 3.0}.get(request.node.callspec.id, 2.0)
    loaded = dict(parts(under(arrivals), duration_s=2.0))[LOADED]
    (length_s,) = {planned_s(item.workload) for item in loaded.treatments}
    assert length_s == pytest.approx(counted_s + WARMUP_S)


def test_one_scripted_user_acts_as_long_as_one_of_a_closed_loop() -> None:
    users = Scripted(script="a:B", users=5, duration_s=600.0, warmup_s=10.0)
    load = one_at_a_time(Workload(request=Request(node="echo"), arrivals=users), 2.0)
    assert load.bound_s == WARMUP_S + 2.0


def planned_s(load: Workload) -> float:
    """Return how long a load sends."""
    arrivals = load.arrivals
    return arrivals.max_duration_s if isinstance(arrivals, ClosedLoop) else load.bound_s
