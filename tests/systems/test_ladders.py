"""Rungs of a ladder can be chosen by name, and no two claims of a run read the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from perflab import systems
from perflab.errors import ParameterError, RecordingError
from perflab.recordings.responses import named
from perflab.systems.chat.rungs import RUNGS
from perflab.systems.chat.stacks import Rung as ChatRung
from perflab.trials.ladders import LadderParameters, read_ladder
from perflab.trials.plan import RunPlan
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


def plans(name: str) -> list[RunPlan]:
    """Return the default plan, and one with all sets or rungs."""
    model = systems.experiment(name).parameters
    parameter_sets: list[dict[str, object]] = [{}]
    if issubclass(model, LadderParameters):
        parameter_sets.append({"sets": [*model.ladder.sets]})
    if name == "chat_ladder":
        parameter_sets += [{"preset": "published"}, {"rungs": tuple(RUNGS)}]
    return [plan_of(name, **parameters) for parameters in parameter_sets]


@pytest.mark.parametrize("name", LADDERS)
def test_every_set_is_explained_and_no_other_can_be_named(name: str) -> None:
    model = systems.experiment(name).parameters
    assert issubclass(model, LadderParameters)
    explained = re.findall(r"(\w+) \(", str(model.model_fields["sets"].description))
    assert set(explained) == set(model.ladder.sets)
    with pytest.raises(ParameterError, match=rf"no set 'nowhere'.*{explained[0]}"):
        plan_of(name, sets="nowhere")


@pytest.mark.parametrize(
    ("rows", "said"),
    [("a,all\na,all\n", "line 3: rung = 'a'"), (",all\n", "line 2: rung = ''")],
)
def test_rungs_without_a_name_of_their_own_are_refused(
    rows: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "rungs.csv"
    file.write_text(f"rung,sets\n{rows}")
    with pytest.raises(RecordingError, match=said):
        read_ladder(file, ChatRung)


def words(plan: RunPlan) -> list[tuple[str, str]]:
    titles = []
    for contrast in plan.contrasts:
        response = named(plan.responses, contrast.response)
        titles.append((contrast.claim, response.title if response else contrast.response))
    return titles


@pytest.mark.parametrize("name", systems.names())
def test_claims_of_a_run_differ_in_their_words_or_their_response(name: str) -> None:
    for plan in plans(name):
        assert [title for title, count in Counter(words(plan)).items() if count > 1] == []
