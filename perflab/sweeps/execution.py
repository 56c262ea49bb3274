"""Carries a sweep out, cell after cell; a failed cell does not end it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import RunInterrupted
from perflab.statistics.in_words import counted
from perflab.sweeps.attempt import AFTER_A_KILL_S, carry_out, interruption, resume_parameters
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.folder import (
    INTERRUPTED,
    NOT_TO_BE_RESUMED,
    AttemptBegun,
    AttemptEnded,
    Journal,
    RunMade,
    locked,
    new_folder,
    newest_folder,
    refuse_changes,
    session_now,
    write_index,
)
from perflab.trials.progress import Event, Note, RunBegun, showing

ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# This word is in the command line of every IPython kernel.
KERNEL = "ipykernel_launcher"
INSIST_EVERY_S = 2.0


class EndRequests:
    """Requests to end this process; ``by`` is the name of the first signal, or empty."""

    def __init__(self) -> None:
        self.by = ""
        self._times = 0

    def take(self, number: int, _frame: object) -> None:
        """Interrupt the running kernel, which ends its run in order.

        The second request, or one without a kernel, raises KeyboardInterrupt. Later requests do
        nothing, so that they do not disturb the end.
        """
        self.by = self.by or signal.Signals(number).name
        self._times += 1
        if (self._times == 1 and not interrupt_kernels()) or self._times == 2:
            raise KeyboardInterrupt(self.by)
        if self._times == 1:
            threading.Thread(target=_insist, daemon=True).start()


def _insist() -> None:
    """Interrupt the kernels until they have ended: one misses an interrupt between two cells."""
    while True:
        time.sleep(INSIST_EVERY_S)
        if not interrupt_kernels():
            return


def interrupt_kernels() -> int:
    """Send SIGINT to the kernels that this process started, and return how many there are."""
    count = 0
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if KERNEL in child.cmdline():
                child.send_signal(signal.SIGINT)
                count += 1
    return count


@contextlib.contextmanager
def end_requests() -> Iterator[EndRequests]:
    """Take SIGINT, SIGTERM and SIGHUP as requests to end while the block runs.

    An ignored signal (``nohup``) stays ignored.
    """
    requests = EndRequests()
    signals = [number for number in ASK_TO_END if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, requests.take) for number in signals}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class SweepOptions:
    """How a sweep is carried out.

    ``resume`` continues the newest sweep of the file. After ``minutes`` no cell begins.
    """

    resume: bool = False
    wait_s: float = 0.0
    minutes: float | None = None

    @property
    def cell_wait_s(self) -> float:
        """How long a cell waits for the host; a process that was killed may still be ending."""
        return max(self.wait_s, AFTER_A_KILL_S) if self.resume else self.wait_s


@dataclass(frozen=True)
class ActiveSweep:
    """A sweep that this process carries out; it holds the lock of the folder."""

    sweep: Sweep
    how: SweepOptions
    folder: Path
    journal: Journal
    show: Callable[[Event], None]
    asked: EndRequests
    failures: Counter[str] = field(default_factory=Counter)

    def cells_to_do(self) -> list[Cell]:
        """Return the cells to do, in the order of the file."""
        return [cell for cell in self.sweep.cells if self.journal.cell(cell.id).state != "done"]

    @property
    def states(self) -> Mapping[str, int]:
        """The number of cells by state so far."""
        return Counter(self.journal.cell(cell.id).state for cell in self.sweep.cells)

    def ended(self, end: AttemptEnded) -> bool:
        """Write down how an attempt ended; return whether to try the cell again now."""
        self.journal.add(end)
        write_index(self.folder, self.sweep, self.journal)
        if end.done or end.kind == INTERRUPTED:
            return False
        begun = self.journal.cell(end.cell).attempts[-1].begun
        if begun.goes_on_with and end.kind in NOT_TO_BE_RESUMED:
            return True  # and measured anew
        self.failures[end.cell] += 1
        return end.infrastructure and self.failures[end.cell] <= self.sweep.retries

    @property
    def way_on(self) -> str:
        """What the user can do to continue the sweep."""
        return f"go on with 'perflab sweep {self.sweep.file} --resume' and the same options"

    def interruption(self) -> RunInterrupted:
        """Return the error that says that the sweep was interrupted, and how to go on."""
        by = f" by {self.asked.by}" if self.asked.by else ""
        return RunInterrupted(f"the sweep was interrupted{by}; {self.way_on}")


@contextlib.contextmanager
def active_sweep(
    sweep: Sweep, how: SweepOptions, machine: Mapping[str, Any] | None = None
) -> Iterator[ActiveSweep]:
    """Make or find the folder of a sweep, lock it, and begin a session in its journal.

    ``machine`` describes the machine that measures the cells, where that is not this host.
    HostBusy where another process has the lock, ResumeRefused where code or machine changed since
    the sweep began.
    """
    folder = newest_folder(sweep) if how.resume else new_folder(sweep)
    with end_requests() as asked, locked(folder), showing() as show:
        journal = Journal(folder)
        now = session_now(sweep, machine)
        show(Note(text=f"sweep {folder}"))
        refuse_changes(journal, now)
        journal.add(now)
        write_index(folder, sweep, journal)
        yield ActiveSweep(sweep, how, folder, journal, show, asked)


def carry_out_sweep(sweep: Sweep, how: SweepOptions) -> ActiveSweep:
    """Carry a sweep out, or continue it, and return it as it ended.

    A failed cell does not end the sweep. No cell begins after ``how.minutes``. Raises
    RunInterrupted if the user stops the sweep, and the errors of :func:`active_sweep`.
    """
    with active_sweep(sweep, how) as active:
        cells = active.cells_to_do()
        deadline_s = None if how.minutes is None else time.monotonic() + 60 * how.minutes
        for number, cell in enumerate(cells, 1):
            if deadline_s is not None and time.monotonic() > deadline_s:
                left_over = counted(len(cells) - number + 1, "cell")
                active.show(Note(text=f"time is up; {left_over} not begun: '--resume' goes on"))
                break
            active.show(Note(text=f"cell {number}/{len(cells)}: {cell.label}"))
            _execute(active, cell)
        return active


def _execute(active: ActiveSweep, cell: Cell) -> None:
    """Execute a cell, and again where its services, its kernel or the host failed."""
    while True:
        ended = _attempt(active, cell)
        tries_again = active.ended(ended)
        if ended.kind == INTERRUPTED or active.asked.by:
            raise active.interruption()
        if ended.done:
            return
        active.show(Note(text=f"cell failed: {ended.in_short}"))
        if not tries_again:
            return
        active.show(Note(text="trying again"))


def _attempt(active: ActiveSweep, cell: Cell) -> AttemptEnded:
    state = active.journal.cell(cell.id)
    resumed = resume_parameters(state.to_go_on_with)
    number = len(state.attempts) + 1
    run_id = next(iter(resumed.values()), "")
    active.journal.add(AttemptBegun(cell=cell.id, attempt=number, goes_on_with=run_id))

    def on_event(event: Event) -> None:
        if isinstance(event, RunBegun):
            # It is written down at once, so that the run can be resumed after a kill.
            active.journal.add(RunMade(cell=cell.id, run_id=event.run_id))
        active.show(event)

    cell_folder = active.folder / "cells" / cell.id
    ended = carry_out(cell, number, resumed, cell_folder, active.how.cell_wait_s, on_event)
    if active.asked.by and not ended.done:
        # The interruption is also the reason for a kernel that failed to start.
        ended = ended.model_copy(update=interruption(cell, active.asked.by))
    return ended
