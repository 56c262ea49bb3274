"""Of a ladder's sets single rungs can be chosen, by name."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from perflab.systems import experiment
from perflab.trials.plan import RunPlan

LADDERS = {
    "registry_downloads": ("step_2", "step_3"),
    "connection_lifecycle": ("phase_5", "phase_6"),
    "llm_streaming": ("stream_old", "stream_new"),
}


def plan(name: str, **parameters: object) -> RunPlan:
    own = experiment(name)
    return own.plan(own.check(parameters))


@pytest.mark.parametrize(("name", "rungs"), LADDERS.items())
def test_only_the_named_rungs_are_measured_and_compared(name: str, rungs: tuple[str, str]) -> None:
    planned = plan(name, rungs=",".join(rungs))
    assert [each.name for each in planned.treatments] == [f"rung={rung}" for rung in rungs]
    assert planned.contrasts
    for contrast in planned.contrasts:
        sides = {contrast.numerator["rung"], contrast.denominator["rung"]}
        assert sides == set(rungs), contrast.name


@pytest.mark.parametrize("name", LADDERS)
def test_without_a_name_all_rungs_of_the_sets_are_measured(name: str) -> None:
    every = [each.name for each in plan(name).treatments]
    assert [each.name for each in plan(name, rungs=[]).treatments] == every
    assert [each.name for each in plan(name, rungs="").treatments] == every
    assert len(every) > 2


def test_rungs_keep_the_order_of_the_ladder() -> None:
    planned = plan("registry_downloads", rungs="step_3,step_0")
    assert [each.name for each in planned.treatments] == ["rung=step_0", "rung=step_3"]


def test_a_rung_of_another_set_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ParameterError) as caught:
        plan("registry_downloads", rungs="step_3,step_33,streamed")
    told = str(caught.value)
    assert "'step_33' (did you mean 'step_3'?), 'streamed'" in told
    assert "step_0, plain_def, step_1, step_1_32, step_2, step_3" in told
    assert plan("registry_downloads", sets="ladder,beyond", rungs="step_3,streamed").treatments


def test_the_length_of_a_run_is_that_of_its_rungs() -> None:
    def told(**parameters: object) -> str:
        (length,) = [
            each
            for each in plan(
                "registry_downloads", preset="published", blocks=1, **parameters
            ).warnings
            if each.code == "registry.length"
        ]
        return length.text

    assert "a block of 6 rungs" in told()
    assert "a block of 1 rung takes" in told(rungs="step_3")
