"""What one run says of itself in a few values: enough to list, choose and group runs.

A record has thousands of values; going through a thousand records takes seconds.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from perflab.recordings.reader import Run
from perflab.recordings.schema import RunRecord
from perflab.recordings.selection import complete_blocks, question_of
from perflab.recordings.tables import NOT_JUDGED

STATES = ("valid", "invalid", "failed")
ID_LENGTH = 8


class TrialCounts(BaseModel):
    """How far a run came: trials by state (those measured again left out), and complete blocks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    complete_blocks: int
    by_state: dict[str, int]


class RunFacts(BaseModel):
    """A run without its measurements.

    ``folder`` is the name of its folder. ``machine_id`` and ``question_id`` are short digests: runs
    with one ``question_id`` asked the same on the same machine and backend
    (:func:`perflab.recordings.select`). ``counts`` is None where nobody looked at its trials yet.
    ``problems`` name what of it is damaged; with ``unreadable`` that is all of it, and every other
    fact is empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    run_id: str = ""
    experiment: str = ""
    backend: str = ""
    state: str = ""
    reason: str = ""
    created_at: str = ""
    began_ns: int = 0
    finished_at: str = ""
    blocks: int = 0
    seed: int = 0
    parameters: dict[str, Any] = Field(default_factory=dict)
    commit: str = ""
    dirty: bool = False
    code: str = ""
    machine: dict[str, Any] = Field(default_factory=dict)
    machine_id: str = ""
    question_id: str = ""
    warnings: list[dict[str, Any]] = Field(default_factory=list)
    counts: TrialCounts | None = None
    problems: list[str] = Field(default_factory=list)
    unreadable: bool = False

    @property
    def age(self) -> tuple[str, int, str]:
        """Return what runs are sorted by, oldest first."""
        return self.created_at, self.began_ns, self.run_id


def record_facts(folder: str, record: RunRecord) -> RunFacts:
    """Return the facts that a record alone holds; no trial is looked at."""
    machine = record.environment.get("machine")
    sessions = record.sessions
    return RunFacts(
        folder=folder,
        run_id=record.run_id,
        experiment=record.experiment,
        backend=record.backend,
        state=record.state,
        reason=record.reason,
        created_at=record.created_at,
        began_ns=sessions[0].realtime_ns if sessions else 0,
        finished_at=record.finished_at,
        blocks=record.blocks,
        seed=record.seed,
        parameters=record.parameters,
        commit=str(record.code.get("commit") or ""),
        dirty=bool(record.code.get("dirty")),
        code=str(record.code.get("fingerprint") or ""),
        machine=machine if isinstance(machine, dict) else {},
        machine_id=_digest(json.dumps(machine, sort_keys=True, default=str)),
        question_id=_digest(question_of(record)),
        warnings=[each.model_dump() for each in record.warnings],
    )


def counted_facts(run: Run) -> RunFacts:
    """Return all facts of a run, after a look at every trial."""
    counts = TrialCounts(complete_blocks=complete_blocks(run), by_state=trials_by_state(run))
    facts = record_facts(run.path.name, run.record)
    return facts.model_copy(update={"counts": counts, "problems": list(run.problems)})


def trials_by_state(run: Run) -> dict[str, int]:
    """Return the number of trials in each state; those that were measured again do not count."""
    trials = run.trials()
    states = trials.loc[~trials["superseded"], "state"]
    counts = {state: int((states == state).sum()) for state in STATES}
    unjudged = int((states == NOT_JUDGED).sum())
    return {**counts, NOT_JUDGED: unjudged} if unjudged else counts


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
