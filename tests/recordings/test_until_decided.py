"""The rule by which blocks are added, its looks, and the record that must agree with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from perflab.errors import ResumeRefused
from perflab.recordings import RunWriter, UntilDecided, check_same
from perflab.statistics.interim_analysis import Look, PlannedLook
from tests.support.synthetic import write_run


def plan(*blocks: int, share: float = 0.25) -> tuple[PlannedLook, ...]:
    return tuple(PlannedLook(blocks=count, share=share) for count in blocks)


RULE = UntilDecided(least_blocks=6, most_blocks=9, plan=plan(6, 7, 9))


def test_a_run_ends_when_nothing_is_undecided_or_with_the_most_blocks() -> None:
    first = RULE.looked(6, ("a", "b"))
    assert first.ended == ""
    assert first.looked(7, ()).ended == "decided"
    last = first.looked(9, ("b",))
    assert last.ended == "most blocks"
    assert last.looks == (Look(blocks=6, undecided=("a", "b")), Look(blocks=9, undecided=("b",)))
    assert last.text() == "until decided: after 9 of at most 9 undecided b"
    assert first.looked(7, ()).text() == "until decided: after 7 of at most 9"


def test_a_run_is_looked_at_as_planned() -> None:
    blocks = range(4, 10)
    assert [count for count in blocks if RULE.is_due(count)] == [6, 7, 9]
    assert [RULE.next_look(count) for count in blocks] == [6, 6, 7, 9, 9, 9]
    assert [RULE.judged_blocks(count) for count in blocks] == [4, 5, 6, 7, 7, 9]


@pytest.mark.parametrize(
    "looks",
    [plan(6, 12, 9), plan(6, 9), plan(7, 12), plan(6, 9, 9, 12), plan(6, 9, 12, share=0.5)],
)
def test_a_plan_that_does_not_lead_from_least_to_most_is_refused(
    looks: tuple[PlannedLook, ...],
) -> None:
    with pytest.raises(ValidationError, match="plan"):
        UntilDecided(least_blocks=6, most_blocks=12, plan=looks)


def test_the_record_has_the_blocks_that_its_rule_came_to(tmp_path: Path) -> None:
    writer = RunWriter.reopen(write_run(tmp_path, blocks=9, requests=60).path)
    writer.update(until_decided=RULE)
    ended = RULE.looked(7, ())
    with pytest.raises(ValidationError, match="by the rule of until_decided it is 7"):
        writer.update(until_decided=ended)
    writer.update(until_decided=ended, blocks=7, order=writer.record.order[:7])
    assert RunWriter.reopen(writer.path).record.until_decided == ended


def test_a_run_that_ended_before_its_most_blocks_is_still_the_run_of_its_plan(
    tmp_path: Path,
) -> None:
    planned = write_run(tmp_path / "planned", blocks=9, requests=60).record
    planned = planned.model_copy(update={"until_decided": RULE})
    shorter = {"until_decided": RULE.looked(7, ()), "blocks": 7, "order": planned.order[:7]}
    check_same(planned.model_copy(update=shorter), planned)
    other = {**shorter, "order": [order[::-1] for order in planned.order[:7]]}
    with pytest.raises(ResumeRefused, match="order"):
        check_same(planned.model_copy(update=other), planned)
