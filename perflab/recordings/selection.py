"""Which runs stand for what was measured: of runs that asked the same, the one with most blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perflab.numerals import counted
from perflab.recordings.reader import Run
from perflab.recordings.schema import RunRecord

# Two runs that differ in these alone asked the same question.
FREE_PARAMETERS = ("blocks", "least_blocks", "most_blocks", "seed", "backend")


@dataclass(frozen=True)
class Selected:
    """A run, its number of complete blocks, and the runs whose place it takes (newest first).

    Runs are never pooled: trials of two runs share no block, so what drifted between them would
    count as an effect.
    """

    run: Run
    complete_blocks: int
    superseded: tuple[Run, ...] = ()

    def reasons(self) -> list[str]:
        """Return a sentence for every run whose place this one takes; all their trials are read."""
        return [self._reason(run, complete_blocks(run)) for run in self.superseded]

    def _reason(self, other: Run, blocks: int) -> str:
        count = counted(blocks, "complete block")
        why = f"only {count}" if blocks < self.complete_blocks else f"{count} as well, and is older"
        mine, theirs = (run.record.code.get("fingerprint") for run in (self.run, other))
        by = "" if mine == theirs else "; it was measured by other code"
        return f"{other.run_id}, which has {why}{by}"


def complete_blocks(run: Run) -> int:
    """Return in how many blocks every treatment has a valid trial."""
    valid = run.valid_trials()
    wanted = len(run.record.treatments)
    per_block = valid.groupby("block")["treatment"].nunique()
    return int((per_block == wanted).sum())


def select(runs: Iterable[Run]) -> list[Selected]:
    """Return, by experiment and backend, one run of those that asked the same.

    The same: experiment, backend, machine, treatments and parameters, but for blocks and seed.
    Of those the run with most complete blocks is taken, the newest where several have as many.
    Runs that did not finish are left out. ``runs`` come oldest first.
    """
    alike: dict[str, list[Run]] = {}
    for run in runs:
        if run.record.state == "finished":
            alike.setdefault(question_of(run.record), []).append(run)
    chosen = [_best(group) for group in alike.values()]
    return sorted(chosen, key=lambda one: (one.run.record.experiment, one.run.record.backend))


def _best(group: list[Run]) -> Selected:
    """Return the choice among runs that asked the same, oldest first.

    Counting a run's complete blocks reads all its trials; one that could not have more than the
    best so far is left unread.
    """
    best, most = group[-1], complete_blocks(group[-1])
    for run in reversed(group[:-1]):
        if run.record.blocks > most and (blocks := complete_blocks(run)) > most:
            best, most = run, blocks
    others = tuple(run for run in reversed(group) if run is not best)
    return Selected(best, most, others)


def question_of(record: RunRecord) -> str:
    """Return what a run asked, where and how: equal texts are of runs that may stand together."""
    asked: dict[str, Any] = {
        name: value for name, value in record.parameters.items() if name not in FREE_PARAMETERS
    }
    names = sorted(treatment.name for treatment in record.treatments)
    machine = record.environment.get("machine")
    return json.dumps(
        [record.experiment, record.backend, machine, names, asked], sort_keys=True, default=str
    )
