"""One attempt at a cell: its notebook executed, with what it left in the words of the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perflab.durable import replace_file
from perflab.errors import NotebookFailed, PerflabError, RecordingError
from perflab.papermill_job import Executed, execute
from perflab.paths import runs_dir
from perflab.recordings import Run, open_run
from perflab.reports.verdicts import verdict_table
from perflab.sweeps.cells import Cell
from perflab.sweeps.journal import INTERRUPTED, NOT_TO_BE_RESUMED, AttemptEnded, CellState
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
