"""A session of a run: blocks of trials, committed one by one, until done, stopped or broken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from perflab.errors import PerflabError, RunInterrupted, StackError
from perflab.load.schedule import planned_count
from perflab.load.stopping import Progress
from perflab.recordings import RunWriter, trial_id
from perflab.stacks.patience import go_on
from perflab.stacks.residents import Residents
from perflab.trials import summary
from perflab.trials.plan import RunPlan
from perflab.trials.trial import Bench, TrialTables, measure

MAX_RESTARTS = 3
Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Remaining:
    """Blocks still to do, and the attempt number of the first of them."""

    blocks: tuple[int, ...]
    attempt: int = 0


class Session:
    """Runs the remaining blocks of a plan and commits every trial when it ends.

    Parameters
    ----------
    emit : callable
        Receives events (dictionaries) for progress.
    """

    def __init__(self, plan: RunPlan, writer: RunWriter, bench: Bench, emit: Emit) -> None:
        self._plan = plan
        self._writer = writer
        self._bench = bench
        self._emit = emit
        self._restarts = 0
        self._spent_s: list[float] = []
        self._failed = 0

    def run(self, remaining: Remaining) -> None:
        """Measure every trial of the remaining blocks.

        Raises
        ------
        RunInterrupted
            The user ended the run.
        StackError
            Services failed more often than they may be restarted.
        """
        order = self._plan.order()
        todo = [
            (block, position, name)
            for block in remaining.blocks
            for position, name in enumerate(order[block])
        ]
        for number, (block, position, name) in enumerate(todo):
            go_on(self._bench.interrupted, "between two trials")
            self._bench.before_trial()
            if number and not position:
                self._refresh(block)
            attempt = remaining.attempt if block == remaining.blocks[0] else 0
            self._announce(number, len(todo), block, name)
            began = time.monotonic()
            tables = self._trial(block, position, attempt, name)
            self._spent_s.append(time.monotonic() - began)
            self._commit(tables)
            if not tables.services_whole:
                self._mend(tables, last=number == len(todo) - 1)

    def _refresh(self, block: int) -> None:
        """Start the services afresh before a block where the plan says so."""
        every = self._plan.fresh_blocks
        if every and block % every == 0:
            self._bench.residents.stop()
            self._bench.residents.start()

    def _trial(self, block: int, position: int, attempt: int, name: str) -> TrialTables:
        treatment = self._plan.treatment(name)
        identity = summary.identity_columns(
            trial_id(block, position, attempt), block, position, attempt, name, treatment.levels
        )
        began = time.monotonic()

        planned = planned_count(treatment.workload.arrivals)

        def progress(so_far: Progress) -> None:
            self._emit(
                {
                    "event": "load",
                    "finished": so_far.finished,
                    "of": planned,
                    "seconds": time.monotonic() - began,
                }
            )

        self._bench.on_progress = progress
        return measure(self._bench, treatment, identity)

    def _announce(self, number: int, total: int, block: int, name: str) -> None:
        mean_s = sum(self._spent_s) / len(self._spent_s) if self._spent_s else None
        self._emit(
            {
                "event": "trial",
                "number": number + 1,
                "of": total,
                "block": block + 1,
                "blocks": self._plan.blocks,
                "treatment": name,
                "label": self._plan.treatment(name).label,
                "left_s": mean_s * (total - number) if mean_s else None,
            }
        )

    def _commit(self, tables: TrialTables) -> None:
        self._writer.commit_trial(
            tables.row,
            tables.requests,
            tables.samples,
            tables.waits,
            tables.messages,
            tables.stacks,
        )
        row = tables.row
        self._emit(
            {
                "event": "trial_done",
                "trial_id": row["trial_id"],
                "state": row["state"],
                "reasons": row["reasons"],
                "throughput_rps": row.get("throughput_rps"),
                "messages_per_s": row.get("messages_per_s"),
            }
        )

    def _mend(self, tables: TrialTables, last: bool) -> None:
        """Start the services afresh after they failed a trial, a bounded number of times."""
        self._failed += 1
        if last:
            return
        self._restarts += 1
        reason = tables.row["reasons"][0]
        if self._restarts > MAX_RESTARTS:
            raise StackError(
                f"{self._failed} trials failed, although the services were started afresh "
                f"{MAX_RESTARTS} times; committed trials are kept. The last reason: {reason}"
            )
        residents: Residents = self._bench.residents
        self._emit(
            {
                "event": "note",
                "text": f"a trial was lost ({reason.splitlines()[0]}); starting the services "
                "afresh",
            }
        )
        residents.stop()
        residents.start()


def state_of(error: BaseException | None) -> tuple[str, str]:
    """Return the run's final state and reason."""
    if error is None:
        return "finished", ""
    if isinstance(error, RunInterrupted):
        return "interrupted", str(error)
    if isinstance(error, PerflabError):
        return "failed", str(error)
    return "failed", f"{type(error).__name__}: {error}"
