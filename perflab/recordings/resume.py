"""What is left of a run, and whether it may be continued here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflab.errors import ResumeRefused
from perflab.recordings.reader import Run
from perflab.recordings.schema import RunRecord


def remaining_blocks(record: RunRecord, path: Path) -> tuple[list[int], int, list[str]]:
    """Return unfinished blocks, the attempt number of the first, and trials it supersedes.

    A block is finished when every treatment has a committed, current trial in it, whatever its
    state. An unfinished block is measured again from its beginning, because comparisons pair
    within blocks.
    """
    trials = Run(path).trials()
    current = trials[~trials["superseded"].astype(bool)]
    committed = current.groupby("block")["treatment"].nunique()
    wanted = len(record.treatments)
    left = [block for block in range(record.blocks) if int(committed.get(block, 0)) < wanted]
    partial = current[current["block"].isin(left)]
    if not left:
        return [], 0, []
    earlier = trials[trials["block"] == left[0]]["attempt"]
    attempt = int(earlier.max()) + 1 if len(earlier) else 0
    return left, attempt, partial["trial_id"].tolist()


def check_same(
    record: RunRecord, fingerprint: str, machine: Mapping[str, Any], backend: str
) -> None:
    """Refuse to continue a run under conditions that would not be comparable.

    Raises
    ------
    ResumeRefused
        Says what changed.
    """
    changes = []
    if record.code.get("fingerprint") != fingerprint:
        changes.append("the code that measures (perflab/ or services/)")
    then = record.environment.get("machine", {})
    changes += [
        f"the machine's {name} ({then.get(name)} then, {value} now)"
        for name, value in machine.items()
        if then.get(name) != value
    ]
    if record.backend != backend:
        changes.append(f"the backend ({record.backend} then, {backend} now)")
    if changes:
        raise ResumeRefused(
            f"run {record.run_id} cannot be resumed, because since it began there changed: "
            + "; ".join(changes)
            + ". Start a new run; this one can still be read (from_run)"
        )
