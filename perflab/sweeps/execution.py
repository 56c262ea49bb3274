"""A sweep carried out: cell after cell, to the end, whatever becomes of one of them."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflab.errors import RunInterrupted
from perflab.statistics.in_words import counted
from perflab.sweeps.attempt import (
    AFTER_A_KILL_S,
    AskedToEnd,
    carry_out,
    goes_on_with,
    heard,
    interruption,
)
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.folder import changes, held, new_folder, newest_folder, session_now
from perflab.sweeps.index import write_index
from perflab.sweeps.journal import (
    INTERRUPTED,
    NOT_TO_BE_RESUMED,
    AttemptBegun,
    AttemptEnded,
    Journal,
    RunMade,
)
from perflab.trials.events import Event, Note, RunBegun, TrialBegun
from perflab.trials.progress import showing


@dataclass(frozen=True)
class How:
    """How a sweep is gone about.

    ``resume`` goes on with the newest sweep of the file. After ``minutes`` no cell is begun.
    """

    resume: bool = False
    wait_s: float = 0.0
    minutes: float | None = None

    @property
    def patience_s(self) -> float:
        """Return how long a cell waits for the host: who was killed before may still be ending."""
        return max(self.wait_s, AFTER_A_KILL_S) if self.resume else self.wait_s


@dataclass(frozen=True)
class Outcome:
    """What became of a sweep: its folder, and how many of its cells are in which state."""

    folder: Path
    states: Mapping[str, int]


@dataclass(frozen=True)
class UnderWay:
    """A sweep that is held: nobody else goes on with it."""

    sweep: Sweep
    how: How
    folder: Path
    journal: Journal
    show: Callable[[Event], None]
    asked: AskedToEnd
    failures: Counter[str] = field(default_factory=Counter)

    def cells_to_do(self) -> list[Cell]:
        """Return the cells that are not done, in the order of the file."""
        return [cell for cell in self.sweep.cells if self.journal.cell(cell.id).state != "done"]

    def outcome(self) -> Outcome:
        """Return what has become of it so far."""
        states = (self.journal.cell(cell.id).state for cell in self.sweep.cells)
        return Outcome(self.folder, Counter(states))

    def ended(self, end: AttemptEnded) -> bool:
        """Write down how an attempt ended; return whether the cell is to be tried again now."""
        self.journal.add(end)
        write_index(self.folder, self.sweep, self.journal)
        if end.done or end.kind == INTERRUPTED:
            return False
        last = self.journal.cell(end.cell).attempts[-1]
        if last.begun.goes_on_with and end.kind in NOT_TO_BE_RESUMED:
            return True  # and measured anew
        self.failures[end.cell] += 1
        return end.infrastructure and self.failures[end.cell] <= self.sweep.retries

    @property
    def way_on(self) -> str:
        """Return how the user goes on with it."""
        return f"go on with 'perflab sweep {self.sweep.file} --resume' and the same options"

    def interruption(self) -> RunInterrupted:
        """Return what says that the sweep was interrupted, and how to go on."""
        by = f" by {self.asked.by}" if self.asked.by else ""
        return RunInterrupted(f"the sweep was interrupted{by}; {self.way_on}")


@contextlib.contextmanager
def under_way(
    sweep: Sweep, how: How, machine: Mapping[str, Any] | None = None
) -> Iterator[UnderWay]:
    """Make or find the folder of a sweep, hold it, and write down that it is gone on with.

    ``machine`` is what its cells are measured on, where that is not this host. HostBusy where
    another process holds it, ResumeRefused where code or machine changed since it began.
    """
    folder = newest_folder(sweep) if how.resume else new_folder(sweep)
    with heard() as asked, held(folder), showing() as show:
        journal = Journal(folder)
        now = session_now(sweep, machine)
        show(Note(text=f"sweep {folder}"))
        if change := changes(journal, now):
            show(Note(text=change))
        journal.add(now)
        write_index(folder, sweep, journal)
        yield UnderWay(sweep, how, folder, journal, show, asked)


def carry_out_sweep(sweep: Sweep, how: How) -> Outcome:
    """Carry a sweep out, or go on with it; a failed cell does not end it.

    RunInterrupted where the user ended it; see also :func:`under_way`.
    """
    with under_way(sweep, how) as begun:
        todo = begun.cells_to_do()
        until = None if how.minutes is None else time.monotonic() + 60 * how.minutes
        for number, cell in enumerate(todo, 1):
            if until is not None and time.monotonic() > until:
                left = counted(len(todo) - number + 1, "cell")
                begun.show(Note(text=f"time is up; {left} not begun: '--resume' goes on"))
                break
            begun.show(Note(text=f"cell {number}/{len(todo)}: {cell.label}"))
            _execute(begun, cell)
        return begun.outcome()


def _execute(begun: UnderWay, cell: Cell) -> None:
    """Execute a cell, again where its services, its kernel or the host failed."""
    while True:
        ended = _attempt(begun, cell)
        is_again = begun.ended(ended)
        if ended.kind == INTERRUPTED or begun.asked.by:
            raise begun.interruption()
        if ended.done:
            return
        begun.show(Note(text=f"cell failed: {ended.in_short}"))
        if not is_again:
            return
        begun.show(Note(text="trying again"))


def _attempt(begun: UnderWay, cell: Cell) -> AttemptEnded:
    state = begun.journal.cell(cell.id)
    again = goes_on_with(state)
    number = len(state.attempts) + 1
    run_id = next(iter(again.values()), "")
    begun.journal.add(AttemptBegun(cell=cell.id, attempt=number, goes_on_with=run_id))

    def hear(event: Event) -> None:
        if isinstance(event, RunBegun):
            # At once: whoever goes on after a kill must know which run it was.
            begun.journal.add(RunMade(cell=cell.id, run_id=event.run_id))
        elif isinstance(event, TrialBegun):
            begun.asked.ask_again()
        begun.show(event)

    kept = begun.folder / "cells" / cell.id
    ended = carry_out(cell, number, again, kept, begun.how.patience_s, hear)
    if begun.asked.by and not ended.done:
        # A kernel that was interrupted while it started failed for no other reason.
        ended = ended.model_copy(update=interruption(cell, begun.asked.by))
    return ended
