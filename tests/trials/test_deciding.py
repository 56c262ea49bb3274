"""A session that ends once everything is decided: fake services and loads, a real recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perflab.recordings import Contrast, UntilDecided
from perflab.recordings.published_results import Direction
from perflab.statistics.interim_analysis import planned
from perflab.trials.progress import Note, TrialBegun
from tests.trials.fakes import Told

RULE = planned(6, 8)
OTHER = planned(6, 8, apart=1)


def claim(direction: Direction) -> Contrast:
    """Return a claim about two services of equal loads: "none" is true, "greater" is not."""
    return Contrast(
        name=f"a is {direction}", claim="a against b", response="throughput_rps",
        numerator={"service": "a"}, denominator={"service": "b"},
        published_direction=direction, source="planted",
    )  # fmt: skip


class DecidingSession(Told):
    """A session whose plan has the rule."""

    def __init__(self, root: Path, *directions: Direction, **words: Any) -> None:
        words = {"until_decided": RULE, "blocks": RULE.most_blocks, **words}
        super().__init__(root, contrasts=tuple(map(claim, directions)), **words)

    def follow(self, rule: UntilDecided, recorded: UntilDecided | None = None) -> None:
        """Go on by a rule; ``recorded`` is another rule in the record."""
        self.events.clear()
        self.writer.update(until_decided=recorded or rule)
        self.plan = self.plan.model_copy(update={"until_decided": rule})

    def measured(self) -> list[int]:
        """Return the blocks of the trials that began, counted from 1."""
        return list(dict.fromkeys(event.block for event in self.of(TrialBegun)))

    def notes(self) -> list[str]:
        return [note.text for note in self.of(Note)]


def test_a_run_ends_at_the_first_interim_analysis_that_decides_everything(tmp_path: Path) -> None:
    session = DecidingSession(tmp_path, "none")
    record = session.go().record
    assert session.measured() == list(range(1, 7))
    assert record.blocks == len(record.order) == 6
    assert record.until_decided is not None
    assert record.until_decided.ended == "decided"
    assert [look.blocks for look in record.until_decided.looks] == [6]
    assert session.notes() == ["block 6: every contrast is decided"]


def test_one_undecided_contrast_keeps_the_run_going_to_its_most_blocks(
    tmp_path: Path,
) -> None:
    session = DecidingSession(tmp_path, "none", "greater")
    record = session.go().record
    assert session.measured() == list(range(1, 9))
    assert record.blocks == 8
    assert record.until_decided is not None
    assert record.until_decided.ended == "most blocks"
    looks = [(look.blocks, look.undecided) for look in record.until_decided.looks]
    assert looks == [(blocks, ("a is greater",)) for blocks in (6, 8)]
    assert session.notes() == [
        "block 6, undecided: a is greater; next interim analysis after block 8",
        "block 8, undecided: a is greater; most_blocks is reached",
    ]


def test_a_resumed_run_keeps_the_rule_of_its_record(tmp_path: Path) -> None:
    session = DecidingSession(tmp_path, "greater", until_decided=None)
    session.go(*range(6))
    session.follow(RULE, recorded=OTHER)
    rule = session.go(6, 7).record.until_decided
    assert rule is not None
    assert rule.plan == OTHER.plan
    assert [look.blocks for look in rule.looks] == [6, 7, 8]


def test_an_incomplete_block_is_measured_before_the_next_interim_analysis(
    tmp_path: Path,
) -> None:
    session = DecidingSession(tmp_path, "none", until_decided=None)
    session.go(*range(7))
    session.writer.supersede(["b002-p00-a0", "b002-p01-a0"])
    session.follow(RULE)
    record = session.go(2, 7, attempt=1).record
    assert session.measured() == [3, 8]
    assert record.blocks == 8
