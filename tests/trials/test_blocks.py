"""``blocks``: a number, or ``until_decided`` with bounds."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from perflab.parameters import check, parse_assignments
from perflab.systems import experiment
from perflab.trials.experiment import RunParameters

NAME = "synchronous_commit"


@pytest.mark.parametrize(
    ("typed", "rule", "blocks"),
    [
        (["blocks=until_decided"], (8, 20), 20),
        (["blocks=until_decided", "least_blocks=6", "most_blocks=30"], (6, 30), 30),
        (["blocks=12"], None, 12),
        ([], None, 8),
    ],
)
def test_a_plan_has_the_blocks_and_the_rule_that_were_typed(
    typed: list[str], rule: tuple[int, int] | None, blocks: int
) -> None:
    chosen = experiment(NAME)
    plan = chosen.plan(chosen.check(parse_assignments(typed)))
    assert plan.blocks == len(plan.order()) == blocks
    planned_rule = plan.until_decided
    assert (planned_rule and (planned_rule.least_blocks, planned_rule.most_blocks)) == rule
    looks = tuple(look.blocks for look in planned_rule.plan) if planned_rule else ()
    assert looks[:1] + looks[-1:] == (rule or ())
    again = chosen.plan(chosen.check(plan.parameters))
    assert (again.until_decided, again.order()) == (planned_rule, plan.order())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"blocks": "untl_decided"}, "blocks = 'untl_decided': give a number of blocks, or until"),
        ({"blocks": 0}, "blocks = 0: input should be greater than or equal to 1"),
        ({"blocks": True}, "true and false mean nothing"),
        ({"most_blocks": 30}, "most_blocks: only with blocks = until_decided; blocks is 8"),
        ({"blocks": "until_decided", "least_blocks": 21}, "least_blocks = 21 is above most_blocks"),
        ({"blocks": "until_decided", "most_blocks": 5}, "greater than or equal to 6"),
    ],
)
def test_wrong_values_are_refused_with_the_way_out(values: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check(RunParameters, values, "experiment 'x'")
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_where_nothing_can_be_decided_the_error_asks_for_a_number() -> None:
    with pytest.raises(ParameterError, match="there is no claim that could be decided"):
        experiment("client_overhead").check({"blocks": "until_decided", "client": ["lean"]})
