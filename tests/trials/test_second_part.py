"""The part of a run that says why: whatever happens in it, the comparison stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import LoadError, PerflabError
from perflab.host.placing import placement
from perflab.load.workload import ClosedLoop, OpenLoop, Stage, Workload
from perflab.recordings import Run, RunRecord
from perflab.recordings.causes import ALONE, LOADED, PROFILED, part_of
from perflab.trials.causes import explain, parts
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
    assert last == f"why the variants differ is not known: {shown}"
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


def test_a_run_whose_requests_come_one_at_a_time_has_no_part_for_its_load() -> None:
    def with_load(load: Workload, arrivals: ClosedLoop | OpenLoop) -> Workload:
        return load.model_copy(update={"arrivals": arrivals})

    def changed(arrivals: ClosedLoop | OpenLoop) -> RunPlan:
        one = plan()
        update = {"treatments": tuple(
            item.model_copy(update={"workload": with_load(item.workload, arrivals)})
            for item in one.treatments
        )}  # fmt: skip
        return one.model_copy(update=update)

    alone = changed(ClosedLoop(users=1, duration_s=1.0))
    assert [name for name, _ in parts(alone, 2.0)] == [ALONE, PROFILED]
    open_loop = changed(OpenLoop(stages=(Stage(rate=50, duration_s=1.0),)))
    assert [name for name, _ in parts(open_loop, 2.0)] == [ALONE, LOADED, PROFILED]
