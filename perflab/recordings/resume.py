"""What is left of an unfinished run, and whether it may be finished here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ResumeRefused
from perflab.recordings.reader import Run
from perflab.recordings.schema import RunRecord
from perflab.recordings.tables import TRIAL_ID, parse_trial_id


@dataclass(frozen=True)
class Remainder:
    """Blocks to measure, each with the attempt to take, and the trials they replace."""

    blocks: tuple[int, ...]
    attempts: Mapping[int, int]
    superseded: tuple[str, ...]


def remainder(
    record: RunRecord, committed: Iterable[str], unreadable: Iterable[str] = ()
) -> Remainder:
    """Return what is left to do, by the ids of the trials that can be read.

    A block is finished when every position of its order has a committed trial, whatever its
    state. All trials of an unfinished block are replaced, so that a block is measured in one go.
    Trials that are ``unreadable`` count for nothing, but their ids are taken.
    """
    by_block: dict[int, list[str]] = {}
    taken: dict[int, int] = {}
    committed = list(committed)
    for name in committed:
        by_block.setdefault(parse_trial_id(name)[0], []).append(name)
    for name in [*unreadable, *committed]:
        block, _, attempt = parse_trial_id(name)
        taken[block] = max(taken.get(block, 0), attempt + 1)
    blocks, superseded = [], []
    for block, order in enumerate(record.order):
        current = [name for name in by_block.get(block, []) if name not in record.superseded]
        if {parse_trial_id(name)[1] for name in current} == set(range(len(order))):
            continue
        blocks.append(block)
        superseded.extend(sorted(current))
    attempts = {block: taken.get(block, 0) for block in blocks}
    # Blocks already begun come first: only they have an attempt above 0.
    blocks.sort(key=lambda block: (attempts[block] == 0, block))
    return Remainder(tuple(blocks), attempts, tuple(superseded))


def remaining_blocks(record: RunRecord, path: Path) -> tuple[list[int], int, list[str]]:
    """Return the blocks to measure, the attempt of the first, and the trials it replaces.

    ResumeRefused where more than one block was broken off: one attempt number cannot say that.
    """
    run = Run(path)
    readable = [str(name) for name in run.trials()["trial_id"]]
    on_disk = [folder.name for folder in path.glob("trials/b*") if TRIAL_ID.fullmatch(folder.name)]
    left = remainder(record, readable, set(on_disk) - set(readable))
    begun = [block for block in left.blocks if left.attempts[block] > 0]
    if len(begun) > 1:
        raise ResumeRefused(
            f"run {record.run_id}: blocks {', '.join(map(str, begun))} are incomplete; damaged "
            f"trials: {'; '.join(run.problems) or 'none'}. Start a new run"
        )
    attempt = left.attempts[left.blocks[0]] if left.blocks else 0
    return list(left.blocks), attempt, list(left.superseded)
