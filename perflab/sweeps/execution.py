"""A sweep carried out: cell after cell, to the end, whatever becomes of one of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import RunInterrupted
from perflab.numerals import counted
from perflab.paths import runs_dir
from perflab.progress import minutes, showing
from perflab.recordings import list_runs
from perflab.sweeps.attempt import (
    AFTER_A_KILL_S,
    NOT_TO_BE_RESUMED,
    carry_out,
    goes_on_with,
    interrupted,
    was_to_be_tried_again,
)
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.estimate import estimated, past_runs
from perflab.sweeps.folder import changes, held, new_folder, newest_folder, session_now
from perflab.sweeps.index import write_index
from perflab.sweeps.journal import (
    INTERRUPTED,
    PAUSED,
    UNFINISHED,
    AttemptBegun,
    AttemptEnded,
    Journal,
    RunMade,
)
from perflab.sweeps.signals import AskedToEnd, heard
from perflab.sweeps.turns import next_turn
from perflab.trials.events import Event, Note, RunBegun, TrialBegun

Show = Callable[[Event], None]


@dataclass(frozen=True)
class How:
    """How a sweep is gone about.

    ``resume`` goes on with the newest sweep of the file, ``retry`` with its failed cells too;
    ``anew`` leaves an unfinished one; ``mixed`` goes on though code or machine changed. ``only``
    keeps cells whose id begins so, or whose label has it in it. ``minutes`` is how long may be
    measured: blocks then go to the cells that need them most (:mod:`perflab.sweeps.turns`).
    """

    resume: bool = False
    retry: bool = False
    anew: bool = False
    mixed: bool = False
    only: str = ""
    wait_s: float = 0.0
    minutes: float | None = None

    @property
    def patience_s(self) -> float:
        """Return how long a cell waits for the host: who was killed before may still be ending."""
        goes_on = self.resume or self.retry
        return max(self.wait_s, AFTER_A_KILL_S) if goes_on else self.wait_s


@dataclass(frozen=True)
class Outcome:
    """What became of a sweep: its folder, and its cells by state."""

    folder: Path
    states: dict[str, int]

    @property
    def failed(self) -> bool:
        """Return whether a cell failed."""
        return bool(self.states.get("failed"))

    @property
    def unfinished(self) -> bool:
        """Return whether a cell can be gone on with."""
        return any(self.states.get(each) for each in UNFINISHED)


def chosen_cells(sweep: Sweep, only: str) -> list[Cell]:
    """Return the cells that ``only`` names; all where it is empty."""
    return [cell for cell in sweep.cells if cell.id.startswith(only) or only in cell.label]


def carry_out_sweep(sweep: Sweep, how: How) -> Outcome:
    """Carry a sweep out, or go on with it; a failed cell does not end it.

    Raises
    ------
    RunInterrupted
        The user ended it; the same command with ``--resume`` goes on.
    HostBusy
        Another process goes on with it.
    ResumeRefused
        Code or machine changed since it began.
    """
    with under_way(sweep, how) as begun:
        return _Carrier(begun).run()


@dataclass(frozen=True)
class UnderWay:
    """A sweep that is held: nobody else goes on with it."""

    sweep: Sweep
    how: How
    folder: Path
    journal: Journal
    show: Show
    asked: AskedToEnd


@contextlib.contextmanager
def under_way(
    sweep: Sweep, how: How, machine: Mapping[str, Any] | None = None
) -> Iterator[UnderWay]:
    """Make or find the folder of a sweep, hold it, and write down that it is gone on with.

    Parameters
    ----------
    machine : mapping, optional
        What its cells are measured on; this host where it is left out.
    """
    goes_on = how.resume or how.retry
    folder = newest_folder(sweep) if goes_on else new_folder(sweep, how.anew)
    with heard() as asked, held(folder, how.wait_s), showing() as show:
        journal = Journal(folder)
        now = session_now(sweep, machine)
        show(Note(text=f"sweep {folder}"))
        for each in changes(journal, now, how.mixed):
            show(Note(text=f"changed: {each}"))
        journal.add(now)
        yield UnderWay(sweep, how, folder, journal, show, asked)


def cells_to_do(begun: UnderWay) -> list[Cell]:
    """Return the cells that are left to do, in the order of the file."""
    wanted = (*UNFINISHED, "failed") if begun.how.retry else UNFINISHED
    retries = begun.sweep.retries

    def is_left(cell: Cell) -> bool:
        state = begun.journal.cell(cell.id)
        return state.state in wanted or was_to_be_tried_again(state, retries)

    return [cell for cell in chosen_cells(begun.sweep, begun.how.only) if is_left(cell)]


def states(begun: UnderWay) -> dict[str, int]:
    """Return how many cells are in each state."""
    found = [begun.journal.cell(cell.id).state for cell in begun.sweep.cells]
    return {state: found.count(state) for state in dict.fromkeys(found)}


class _Carrier:
    def __init__(self, begun: UnderWay) -> None:
        self._begun = begun
        self._sweep = begun.sweep
        self._how = begun.how
        self._folder = begun.folder
        self._journal = begun.journal
        self._show = begun.show
        self._asked = begun.asked

    def run(self) -> Outcome:
        """Execute what is left to do, one cell after the other."""
        todo = cells_to_do(self._begun)
        write_index(self._folder, self._sweep, self._journal)
        if self._how.minutes is None:
            for number, cell in enumerate(todo, 1):
                left = self._left(todo[number - 1 :])
                self._show(Note(text=f"cell {number}/{len(todo)}{left}: {cell.label}"))
                self._cell(cell)
        else:
            self._by_turns(todo, time.monotonic() + 60 * self._how.minutes)
        return Outcome(self._folder, states(self._begun))

    def _by_turns(self, todo: list[Cell], until: float) -> None:
        """Give the next block to the cell that needs it most, as long as there is time."""
        while turn := next_turn(todo, self._journal, until - time.monotonic()):
            self._show(Note(text=turn.text))
            self._cell(turn.cell, turn.pause_after)
            if self._journal.cell(turn.cell.id).state not in UNFINISHED:
                todo.remove(turn.cell)
        if todo:
            self._show(Note(text=f"time is up; {counted(len(todo), 'cell')} can go on with more"))

    def _left(self, cells: Sequence[Cell]) -> str:
        """Return in words how long the cells will take, by the runs that there are by now."""
        past = past_runs(list_runs(runs_dir()))
        known = [estimated(cell, past).seconds for cell in cells]
        told = [seconds for seconds in known if seconds is not None]
        if not told:
            return ""
        more = f" and {len(known) - len(told)} cells nobody knows" if len(told) < len(known) else ""
        return f", about {minutes(sum(told))}{more} of measuring left in all"

    def _cell(self, cell: Cell, pause_after: int | None = None) -> None:
        """Execute a cell, again where its services, its kernel or the host failed."""
        self._tried(cell, pause_after)
        write_index(self._folder, self._sweep, self._journal)

    def _tried(self, cell: Cell, pause_after: int | None) -> None:
        failures = 0
        while True:
            ended = self._attempt(cell, pause_after)
            if ended.done or ended.kind == PAUSED:
                return
            self._show(Note(text=f"cell failed: {ended.kind}: {_first_line(ended.error)}"))
            went_on = bool(self._journal.cell(cell.id).attempts[-1].begun.goes_on_with)
            if went_on and ended.kind in NOT_TO_BE_RESUMED:
                self._show(Note(text="its run cannot be gone on with; measuring the cell anew"))
                continue
            failures += 1
            if not ended.infrastructure or failures > self._sweep.retries:
                return
            self._show(Note(text=f"trying again ({failures} of {self._sweep.retries})"))

    def _attempt(self, cell: Cell, pause_after: int | None) -> AttemptEnded:
        state = self._journal.cell(cell.id)
        again = goes_on_with(state)
        number = len(state.attempts) + 1
        run_id = next(iter(again.values()), "")
        self._journal.add(
            AttemptBegun(cell=cell.id, attempt=number, label=cell.label, goes_on_with=run_id)
        )

        def hear(event: Event) -> None:
            if isinstance(event, RunBegun):
                # At once: whoever goes on after a kill must know which run it was.
                self._journal.add(RunMade(cell=cell.id, run_id=event.run_id))
            elif isinstance(event, TrialBegun):
                self._asked.ask_again()
            self._show(event)

        kept, wait_s = self._folder / "cells" / cell.id, self._how.patience_s
        began = time.monotonic()
        ended: AttemptEnded | None = None
        with contextlib.suppress(RunInterrupted):
            ended = carry_out(cell, number, again, kept, wait_s, hear, pause_after)
        if ended is None or (self._asked.by and not ended.done):
            # A kernel that was interrupted while it started failed for no other reason.
            seconds = round(time.monotonic() - began, 1)
            ended = interrupted(cell, number, seconds, state.run_id, self._asked.by)
        self._journal.add(ended)
        if ended.kind == INTERRUPTED or self._asked.by:
            write_index(self._folder, self._sweep, self._journal)
            way_on = f"go on with 'perflab sweep {self._sweep.file} --resume'"
            raise RunInterrupted(f"{ended.error or 'the sweep was interrupted'}; {way_on}")
        return ended


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")
