"""A session that ends once everything is decided: fake services and loads, a real recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perflab.recordings import Contrast, UntilDecided
from perflab.recordings.contrasts import Direction
from perflab.statistics.interim_analysis import planned
from perflab.trials.events import Note, TrialBegun
from tests.trials.fakes import Told

RULE = planned(8, 10)
OTHER = planned(8, 10, apart=1)


def claim(direction: Direction) -> Contrast:
    """Return a claim about two services whose loads are alike: "none" holds, "greater" does not."""
    return Contrast(
        name=f"a is {direction}", claim="a against b", response="throughput_rps",
        numerator={"service": "a"}, denominator={"service": "b"},
        published_direction=direction, source="planted",
    )  # fmt: skip


class Looked(Told):
    """A run of a plan with the rule."""

    def __init__(self, root: Path, *directions: Direction, **words: Any) -> None:
        words = {"until_decided": RULE, "blocks": RULE.most_blocks, **words}
        super().__init__(root, contrasts=tuple(map(claim, directions)), **words)

    def follow(self, rule: UntilDecided, kept: UntilDecided | None = None) -> None:
        """Go on by a rule; ``kept`` is another that the record has."""
        self.events.clear()
        self.writer.update(until_decided=kept or rule)
        self.plan = self.plan.model_copy(update={"until_decided": rule})

    def measured(self) -> list[int]:
        """Return the blocks of the trials begun, counted from 1."""
        return list(dict.fromkeys(event.block for event in self.of(TrialBegun)))

    def notes(self) -> list[str]:
        return [note.text for note in self.of(Note)]


def test_a_run_ends_at_the_first_look_that_leaves_nothing_undecided(tmp_path: Path) -> None:
    looked = Looked(tmp_path, "none")
    found = looked.go().record
    assert looked.measured() == list(range(1, 9))
    assert found.blocks == len(found.order) == 8
    assert found.until_decided is not None
    assert found.until_decided.ended == "decided"
    assert [look.blocks for look in found.until_decided.looks] == [8]
    assert looked.notes() == ["block 8: every contrast is decided"]


def test_one_contrast_that_is_undecided_keeps_the_run_going_to_its_most_blocks(
    tmp_path: Path,
) -> None:
    looked = Looked(tmp_path, "none", "greater")
    found = looked.go().record
    assert looked.measured() == list(range(1, 11))
    assert found.blocks == 10
    assert found.until_decided is not None
    assert found.until_decided.ended == "most blocks"
    looks = [(look.blocks, look.undecided) for look in found.until_decided.looks]
    assert looks == [(blocks, ("a is greater",)) for blocks in (8, 10)]
    assert looked.notes() == [
        "block 8, undecided: a is greater; next look after block 10",
        "block 10, undecided: a is greater; it has the most blocks that it may have",
    ]


def test_a_look_that_a_kill_prevented_is_taken_when_the_run_is_resumed(tmp_path: Path) -> None:
    looked = Looked(tmp_path, "none", until_decided=None)
    looked.go(*range(8))
    looked.follow(RULE)
    found = looked.go(8, 9).record
    assert looked.measured() == []
    assert (found.blocks, found.until_decided and found.until_decided.ended) == (8, "decided")


def test_a_run_that_is_gone_on_with_keeps_the_rule_of_its_record(tmp_path: Path) -> None:
    looked = Looked(tmp_path, "greater", until_decided=None)
    looked.go(*range(8))
    looked.follow(RULE, kept=OTHER)
    found = looked.go(8, 9).record.until_decided
    assert found is not None
    assert found.plan == OTHER.plan
    assert [look.blocks for look in found.looks] == [8, 9, 10]


def test_a_block_that_was_broken_off_is_measured_before_the_run_is_looked_at(
    tmp_path: Path,
) -> None:
    looked = Looked(tmp_path, "none", until_decided=None)
    looked.go(*range(9))
    looked.writer.supersede(["b002-p00-a0", "b002-p01-a0"])
    looked.follow(RULE)
    found = looked.go(2, 9, attempt=1).record
    assert looked.measured() == [3, 10]
    assert found.blocks == 10
