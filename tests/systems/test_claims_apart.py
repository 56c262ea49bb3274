"""No two rows of a table of verdicts read the same."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from perflab import systems
from perflab.recordings.responses import named
from perflab.systems.chat.rungs import RUNGS
from perflab.trials.plan import RunPlan

SHIPPED = [each.name for each in systems.experiments()]


def plans(name: str) -> list[RunPlan]:
    """Return the plan by default, and the one with all sets or rungs."""
    own = systems.experiment(name)
    fields = own.parameters.model_fields
    chosen: list[dict[str, object]] = [{}]
    if "sets" in fields:
        (each, _) = get_args(fields["sets"].annotation)
        chosen.append({"sets": get_args(each)})
    if name == "chat_ladder":
        chosen += [{"preset": "published"}, {"rungs": tuple(RUNGS)}]
    return [own.plan(own.check(parameters)) for parameters in chosen]


def words(plan: RunPlan) -> list[tuple[str, str]]:
    titles = []
    for each in plan.contrasts:
        response = named(plan.responses, each.response)
        titles.append((each.claim, response.title if response else each.response))
    return titles


@pytest.mark.parametrize("name", SHIPPED)
def test_claims_of_a_run_differ_in_their_words_or_their_response(name: str) -> None:
    for plan in plans(name):
        assert [each for each, count in Counter(words(plan)).items() if count > 1] == []
