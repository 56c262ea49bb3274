"""A resumed run repeats no finished block; its record agrees with the rule by which it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from perflab.errors import ResumeRefused
from perflab.recordings import Run, RunWriter, UntilDecided, check_same, remaining_blocks
from perflab.recordings.store import remainder
from perflab.statistics.interim_analysis import Look, PlannedLook
from tests.support.synthetic import write_run


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> Run:
    return write_run(tmp_path_factory.mktemp("runs"), blocks=4, requests=40, failed=[(3, 0)])


def ids(*names: str) -> list[str]:
    return [f"b{name[0].zfill(3)}-p{name[1].zfill(2)}-a{name[2]}" for name in names]


@pytest.mark.promise
def test_a_complete_run_has_nothing_left_failed_trials_included(complete) -> None:
    assert remaining_blocks(complete.record, complete.path) == ({}, [])


@pytest.mark.promise
def test_the_broken_block_is_done_again_whole(complete) -> None:
    left = remainder(complete.record, ids("000", "010", "100"))
    assert left == ({1: 1, 2: 0, 3: 0}, ["b001-p00-a0"])


def test_a_second_interruption_takes_a_third_attempt(complete) -> None:
    record = complete.record.model_copy(update={"superseded": ["b000-p00-a0"]})
    attempts, superseded = remainder(record, ids("000", "001"))
    assert attempts[0] == 2
    assert superseded == ["b000-p00-a1"]


def test_a_damaged_trial_leaves_its_block_to_do_and_its_id_taken(complete) -> None:
    attempts, _ = remainder(complete.record, ids("000", "010", "110"), unreadable=ids("100"))
    assert next(iter(attempts.items())) == (1, 1)


def test_what_is_on_disk_decides(tmp_path) -> None:
    run = write_run(tmp_path, blocks=3, requests=40)
    for name in ("b000-p01-a0", "b002-p01-a0"):
        shutil.rmtree(run.path / "trials" / name)
    attempts, superseded = remaining_blocks(run.record, run.path)
    assert (attempts, superseded) == ({0: 1, 2: 1}, ["b000-p00-a0", "b002-p00-a0"])
    writer = RunWriter.reopen(run.path)
    writer.supersede(superseded)
    assert len(Run(run.path).valid_trials()) == 2


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
    assert last.text() == "until decided: after 9 of at most 9; not decided: b"
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
