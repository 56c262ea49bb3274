"""Single rungs of a ladder's sets can be chosen by name."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from tests.systems.planned import plan_of

LADDERS = {
    "registry_downloads": ("step_2", "step_3"),
    "connection_lifecycle": ("phase_5", "phase_6"),
    "llm_streaming": ("stream_old", "stream_new"),
}


@pytest.mark.parametrize(("name", "rungs"), LADDERS.items())
def test_only_the_named_rungs_are_measured_and_compared(name: str, rungs: tuple[str, str]) -> None:
    # Rungs keep the order of the ladder.
    planned = plan_of(name, rungs=",".join(reversed(rungs)))
    assert [treatment.name for treatment in planned.treatments] == [
        f"rung={rung}" for rung in rungs
    ]
    assert planned.contrasts
    for contrast in planned.contrasts:
        sides = {contrast.numerator["rung"], contrast.denominator["rung"]}
        assert sides == set(rungs), contrast.name


def test_a_rung_of_another_set_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        plan_of("registry_downloads", rungs="step_3,step_33,streamed")
    message = str(caught.value)
    assert "'step_33' (did you mean 'step_3'?), 'streamed'" in message
    assert "step_0, plain_def, step_1, step_1_32, step_2, step_3" in message
    assert plan_of("registry_downloads", sets="ladder,beyond", rungs="step_3,streamed").treatments
