"""One attempt at a cell: executes its notebook and returns the entry for the journal."""

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
from perflab.trials.progress import Event, RunBegun

# Errors of services, images, the host and the lab's processes: another attempt may succeed.
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
# After a kill the load, the services and the host's lock may take this long to end.
AFTER_A_KILL_S = 60.0


def resume_parameters(state: CellState) -> dict[str, str]:
    """Return the parameter by which a cell resumes the run that it made, if it made one.

    A finished run is shown instead: the failure came after it, and nothing is measured twice.
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
    resumed: Mapping[str, str],
    folder: Path,
    wait_s: float,
    on_event: Callable[[Event], None],
) -> AttemptEnded:
    """Execute a cell's notebook once, and return how it ended; errors are part of that.

    ``number`` counts the attempts from 1. ``resumed`` is of :func:`resume_parameters`. A failed
    notebook and its log are kept in ``folder``.
    """
    run_id = next(iter(resumed.values()), "")

    def note_run(event: Event) -> None:
        nonlocal run_id
        if isinstance(event, RunBegun):
            run_id = event.run_id
        on_event(event)

    # The previous attempt may have been killed before its run was written down.
    wait_s = max(wait_s, AFTER_A_KILL_S) if number > 1 else wait_s
    saved = folder / f"{cell.notebook}-attempt-{number}"
    begin = time.monotonic()
    end: dict[str, Any]
    try:
        parameters: dict[str, Any] = {**cell.parameters, **resumed, "wait_s": wait_s}
        end = _result(execute(cell.notebook, parameters, note_run, saved.with_suffix(".ipynb")))
    except KeyboardInterrupt:
        end = interruption(cell)
    except PerflabError as error:
        if not isinstance(error, NotebookFailed):
            error = NotebookFailed(cell.notebook, type(error).__name__, str(error))
        is_interrupted = error.kind in ("KeyboardInterrupt", INTERRUPTED)
        end = interruption(cell) if is_interrupted else _failure(saved, error)
    return AttemptEnded(
        cell=cell.id,
        attempt=number,
        seconds=round(time.monotonic() - begin, 1),
        run_id=run_id,
        **end,
    )


def interruption(cell: Cell, by: str = "") -> dict[str, Any]:
    """Return the end of an interrupted cell for the journal; ``by`` names the signal."""
    error = f"cell '{cell.label}' was interrupted{f' by {by}' if by else ''}"
    return {"done": False, "kind": INTERRUPTED, "error": error, "infrastructure": False}


def _failure(saved: Path, error: NotebookFailed) -> dict[str, Any]:
    """Write the log of a failed attempt, and return its end."""
    saved.parent.mkdir(parents=True, exist_ok=True)
    log, notebook = saved.with_suffix(".log"), saved.with_suffix(".ipynb")
    replace_file(log, f"{error}\n{error.log}\n".encode())
    return {
        "done": False,
        "kind": error.kind,
        "error": error.text,
        "infrastructure": error.kind in INFRASTRUCTURE,
        "log": str(log),
        "notebook": str(notebook) if notebook.exists() else "",
    }


def _result(executed: Executed) -> dict[str, Any]:
    """Return the results of a finished run, so that the index need not open every run again."""
    run = Run(runs_dir() / executed.run_id)
    trials = run.trials()
    rows = verdict_table([run])[["claim", "verdict", "measured [95%]"]]
    return {
        "done": True,
        "notebook": str(executed.notebook),
        "figures": tuple(map(str, sorted(executed.notebook.parent.glob("*.svg")))),
        "valid_trials": len(run.valid_trials()),
        "trials": int((~trials["superseded"].astype(bool)).sum()),
        "verdicts": tuple(tuple(map(str, row)) for row in rows.to_numpy()),
    }


ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# This word is in the command line of every IPython kernel.
KERNEL = "ipykernel_launcher"


class EndRequests:
    """Requests to end this process; ``by`` is the name of the first signal, or empty."""

    def __init__(self) -> None:
        self.by = ""
        self._times = 0

    def ask(self, by: str) -> None:
        """Interrupt the running kernel, which ends its run in order.

        The second request, or one without a kernel, raises KeyboardInterrupt. Later requests do
        nothing, so that they do not disturb the end.
        """
        self.by = self.by or by
        self._times += 1
        if (self._times == 1 and not interrupt_kernels()) or self._times == 2:
            raise KeyboardInterrupt(by)

    def ask_again(self) -> None:
        """Interrupt once more: a kernel between two cells does not notice the first signal."""
        if self.by:
            interrupt_kernels()


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

    An ignored signal (``nohup``) stays ignored. Only the main thread receives signals, so in
    another thread nothing changes.
    """
    requests = EndRequests()
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return

    def take(received: int, _frame: object) -> None:
        requests.ask(signal.Signals(received).name)

    signals = [number for number in ASK_TO_END if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, take) for number in signals}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
