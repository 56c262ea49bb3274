"""No two rows of a table of verdicts read the same."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from perflab import systems
from perflab.recordings.responses import named
from perflab.systems.chat.rungs import RUNGS
from perflab.trials.plan import RunPlan

SHIPPED = [experiment.name for experiment in systems.experiments()]


def plans(name: str) -> list[RunPlan]:
    """Return the default plan, and one with all sets or rungs."""
    chosen_experiment = systems.experiment(name)
    fields = chosen_experiment.parameters.model_fields
    parameter_sets: list[dict[str, object]] = [{}]
    if "sets" in fields:
        (sets, _) = get_args(fields["sets"].annotation)
        parameter_sets.append({"sets": get_args(sets)})
    if name == "chat_ladder":
        parameter_sets += [{"preset": "published"}, {"rungs": tuple(RUNGS)}]
    return [
        chosen_experiment.plan(chosen_experiment.check(parameters)) for parameters in parameter_sets
    ]


def words(plan: RunPlan) -> list[tuple[str, str]]:
    titles = []
    for contrast in plan.contrasts:
        response = named(plan.responses, contrast.response)
        titles.append((contrast.claim, response.title if response else contrast.response))
    return titles


@pytest.mark.parametrize("name", SHIPPED)
def test_claims_of_a_run_differ_in_their_words_or_their_response(name: str) -> None:
    for plan in plans(name):
        assert [title for title, count in Counter(words(plan)).items() if count > 1] == []
