"""One attempt at a cell: its notebook executed, with what it left in the words of the journal."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import NotebookFailed, PerflabError, RecordingError
from perflab.host.files import replace_file
from perflab.paths import runs_dir
from perflab.recordings import Run, open_run
from perflab.reports.verdicts import verdict_table
from perflab.sweeps.cells import Cell
from perflab.sweeps.journal import INTERRUPTED, NOT_TO_BE_RESUMED, AttemptEnded, CellState
from perflab.sweeps.notebook import Executed, execute
from perflab.trials.events import Event, RunBegun

# What can go well when it is tried again: services, images, the host, the lab's own processes.
INFRASTRUCTURE = frozenset(
    {
        "BackendUnavailable",
        "ConductorLost",
        "DeadKernelError",
        "HookFailed",
        "HostBusy",
        "ImageError",
        "LoadError",
        "ServiceFailed",
        "StackError",
    }
)
# Whoever was killed a moment ago may still be ending: the load, the services, the host's lock.
AFTER_A_KILL_S = 60.0


def goes_on_with(state: CellState) -> dict[str, str]:
    """Return the parameter by which a cell goes on with the run that it made, if it made one.

    A run that finished is shown: what failed came after it, and nothing is measured twice.
    """
    last = state.attempts[-1].ended if state.attempts else None
    if not state.run_id or (last is not None and last.kind in NOT_TO_BE_RESUMED):
        return {}
    try:
        record = open_run(state.run_id, runs_dir()).record
    except RecordingError:
        return {}
    return {"from_run" if record.state == "finished" else "resume": state.run_id}


def carry_out(
    cell: Cell,
    number: int,
    again: Mapping[str, str],
    folder: Path,
    wait_s: float,
    on_event: Callable[[Event], None],
) -> AttemptEnded:
    """Execute a cell's notebook once, and return how it ended, whatever that was.

    ``number`` counts its attempts from 1, ``again`` is of :func:`goes_on_with`; a notebook that
    failed, and its log, are kept in ``folder``.
    """
    run_id = next(iter(again.values()), "")

    def hear(event: Event) -> None:
        nonlocal run_id
        if isinstance(event, RunBegun):
            run_id = event.run_id
        on_event(event)

    # The attempt before may have been killed before anybody knew of its run.
    wait_s = max(wait_s, AFTER_A_KILL_S) if number > 1 else wait_s
    kept = folder / f"{cell.notebook}-attempt-{number}"
    began = time.monotonic()
    told: dict[str, Any]
    try:
        parameters: dict[str, Any] = {**cell.parameters, **again, "wait_s": wait_s}
        told = _result(execute(cell.notebook, parameters, hear, kept.with_suffix(".ipynb")))
    except KeyboardInterrupt:
        told = interruption(cell)
    except PerflabError as error:
        kind = error.kind if isinstance(error, NotebookFailed) else type(error).__name__
        if kind in ("KeyboardInterrupt", INTERRUPTED):
            told = interruption(cell)
        else:
            told = {**_failure(kind, error), **_kept(kept, error)}
    return AttemptEnded(
        cell=cell.id,
        attempt=number,
        seconds=round(time.monotonic() - began, 1),
        run_id=run_id,
        **told,
    )


def interruption(cell: Cell, by: str = "") -> dict[str, Any]:
    """Return what the journal says of a cell that was ended in order; ``by`` names the signal."""
    error = f"cell '{cell.label}' was interrupted{f' by {by}' if by else ''}"
    return {"done": False, "kind": INTERRUPTED, "error": error, "infrastructure": False}


def _failure(kind: str, error: PerflabError) -> dict[str, Any]:
    text = error.text if isinstance(error, NotebookFailed) else str(error)
    return {"done": False, "kind": kind, "error": text, "infrastructure": kind in INFRASTRUCTURE}


def _kept(kept: Path, error: PerflabError) -> dict[str, str]:
    """Write why an attempt failed; return where that and the notebook are."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    log, notebook = kept.with_suffix(".log"), kept.with_suffix(".ipynb")
    trace = error.log if isinstance(error, NotebookFailed) else ""
    replace_file(log, f"{error}\n{trace}\n".encode())
    return {"log": str(log), "notebook": str(notebook) if notebook.exists() else ""}


def _result(done: Executed) -> dict[str, Any]:
    """Return what a finished run says, so that the index need not open every run again."""
    run = Run(runs_dir() / done.run_id)
    trials = run.trials()
    rows = verdict_table([run])[["claim", "verdict", "measured [95%]"]]
    return {
        "done": True,
        "notebook": str(done.notebook),
        "figures": tuple(str(path) for path in done.figures()),
        "valid_trials": len(run.valid_trials()),
        "trials": int((~trials["superseded"].astype(bool)).sum()),
        "verdicts": tuple(tuple(map(str, row)) for row in rows.to_numpy()),
    }


ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# In the command of every kernel of IPython.
KERNEL = "ipykernel_launcher"


class AskedToEnd:
    """Whether this process was asked to end: ``by`` is the first signal's name, or empty."""

    def __init__(self) -> None:
        self.by = ""
        self._times = 0

    def ask(self, by: str) -> None:
        """Interrupt the kernel under way: its run ends in order, and its notebook tells of that.

        KeyboardInterrupt where there is no kernel, and the second time: somebody does not want to
        wait. Later signals are not heard, so that what ends is not disturbed.
        """
        self.by = self.by or by
        self._times += 1
        if (self._times == 1 and not interrupt_kernels()) or self._times == 2:
            raise KeyboardInterrupt(by)

    def ask_again(self) -> None:
        """Interrupt once more: a kernel that was between two cells does not notice the first."""
        if self.by:
            interrupt_kernels()


def interrupt_kernels() -> int:
    """Send SIGINT to the kernels that this process started, and return how many there are."""
    found = 0
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if KERNEL in child.cmdline():
                child.send_signal(signal.SIGINT)
                found += 1
    return found


@contextlib.contextmanager
def heard() -> Iterator[AskedToEnd]:
    """Hear SIGINT, SIGTERM and SIGHUP while the block runs.

    A signal that is ignored (``nohup``) stays so. Only the main thread receives signals: in another
    one nothing changes.
    """
    asked = AskedToEnd()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def take(number: int, _frame: object) -> None:
        asked.ask(signal.Signals(number).name)

    taken = [each for each in ASK_TO_END if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, take) for each in taken}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
