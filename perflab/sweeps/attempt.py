"""One attempt at a cell: its notebook executed, with what it left in the words of the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perflab import systems
from perflab.asked import asked_for, order_of
from perflab.durable import replace_file
from perflab.errors import NotebookFailed, PerflabError, RecordingError, RunInterrupted, RunPaused
from perflab.papermill_job import Executed, execute
from perflab.paths import runs_dir
from perflab.progress import Narrator
from perflab.recordings import Run, open_run
from perflab.reports.verdicts import verdict_table
from perflab.sweeps.cells import Cell
from perflab.sweeps.journal import INTERRUPTED, PAUSED, AttemptEnded, CellState
from perflab.trials.client import conduct
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
BY_THE_USER = frozenset({"KeyboardInterrupt", INTERRUPTED})
# A run that cannot be gone on with: the next attempt measures anew.
NOT_TO_BE_RESUMED = frozenset({"ResumeRefused", "RunNotFound", "RecordingError"})
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


def was_to_be_tried_again(state: CellState, retries: int) -> bool:
    """Return whether a cell failed, and its sweep ended before it was tried again as it was to be.

    Parameters
    ----------
    retries : int
        How often the sweep file has a cell tried again.
    """
    last = state.attempts[-1] if state.attempts else None
    if last is None or last.ended is None or last.outcome != "failed":
        return False
    if last.begun.goes_on_with and last.ended.kind in NOT_TO_BE_RESUMED:
        return True
    failures = sum(each.outcome == "failed" for each in state.attempts)
    return last.ended.infrastructure and failures <= retries


def carry_out(
    cell: Cell,
    number: int,
    again: Mapping[str, str],
    folder: Path,
    wait_s: float,
    on_event: Callable[[Event], None],
    pause_after: int | None = None,
) -> AttemptEnded:
    """Execute a cell's notebook once.

    Parameters
    ----------
    number : int
        Which attempt it is, from 1.
    again : mapping
        Of :func:`goes_on_with`.
    folder : Path
        Where a notebook that failed, and its log, are kept.
    pause_after : int, optional
        Measure first, without the notebook, until the run has so many blocks. It is executed only
        where the run is finished by then, to show it; else the cell is paused.

    Raises
    ------
    RunInterrupted
        The user ended it.
    """
    log = _Log(on_event)
    # The attempt before may have been killed before anybody knew of its run.
    wait_s = max(wait_s, AFTER_A_KILL_S) if number > 1 else wait_s
    kept = folder / f"{cell.notebook}-attempt-{number}"
    began = time.monotonic()
    ended: dict[str, Any]
    try:
        if pause_after is not None and "from_run" not in again:
            again = {"from_run": _measured(cell, {**again, "wait_s": wait_s}, log, pause_after)}
        parameters: dict[str, Any] = {**cell.parameters, **again, "wait_s": wait_s}
        done = execute(cell.notebook, parameters, log, kept.with_suffix(".ipynb"))
        ended = {"done": True, "notebook": str(done.notebook), **_result(done)}
    except KeyboardInterrupt:
        raise RunInterrupted(f"cell '{cell.label}' was interrupted") from None
    except RunPaused:
        ended = {"done": False, "kind": PAUSED, **_so_far(log.run_id)}
    except PerflabError as error:
        kind = error.kind if isinstance(error, NotebookFailed) else type(error).__name__
        if kind in BY_THE_USER:
            raise RunInterrupted(f"cell '{cell.label}' was interrupted") from None
        ended = {
            "done": False,
            "kind": kind,
            "error": error.text if isinstance(error, NotebookFailed) else str(error),
            "infrastructure": kind in INFRASTRUCTURE,
            **_kept(kept, log, error),
        }
    seconds = round(time.monotonic() - began, 1)
    run_id = log.run_id or next(iter(again.values()), "")
    return AttemptEnded(
        cell=cell.id, attempt=number, seconds=seconds, **{"run_id": run_id, **ended}
    )


def _measured(
    cell: Cell, again: Mapping[str, Any], on_event: Callable[[Event], None], pause_after: int
) -> str:
    """Measure until the run is finished, and return its id; RunPaused where it is not by then."""
    chosen = systems.experiment(cell.notebook)
    checked = asked_for(chosen, {**cell.parameters, **again})
    return conduct(order_of(chosen, checked, pause_after), on_event).name


def interrupted(cell: Cell, number: int, seconds: float, run_id: str, by: str = "") -> AttemptEnded:
    """Return how an attempt ended that somebody ended in order; ``by`` names the signal."""
    return AttemptEnded(
        cell=cell.id,
        attempt=number,
        done=False,
        seconds=seconds,
        run_id=run_id,
        kind=INTERRUPTED,
        error=f"cell '{cell.label}' was interrupted{f' by {by}' if by else ''}",
    )


class _Log:
    """What a cell's run told, as lines, on the way to whoever shows it."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self._narrator = Narrator()
        self.lines: list[str] = []
        self.run_id = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunBegun):
            self.run_id = event.run_id
        text, stays = self._narrator.line(event)
        if stays:
            self.lines.append(text)
        self._on_event(event)


def _kept(kept: Path, log: _Log, error: PerflabError) -> dict[str, str]:
    """Write the log of a failed attempt; return where it and the notebook are."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    path = kept.with_suffix(".log")
    trace = error.log if isinstance(error, NotebookFailed) else ""
    replace_file(path, "\n".join([*log.lines, str(error), trace, ""]).encode())
    notebook = kept.with_suffix(".ipynb")
    return {"log": str(path), "notebook": str(notebook) if notebook.exists() else ""}


def _result(done: Executed) -> dict[str, Any]:
    """Return what a finished run says, so that the index need not open every run again."""
    figures = tuple(str(path) for path in done.saved(".svg"))
    return {"run_id": done.run_id, "figures": figures, **_so_far(done.run_id)}


def _so_far(run_id: str) -> dict[str, Any]:
    """Return what the trials of a run say, which may be unfinished."""
    run = Run(runs_dir() / run_id)
    trials = run.trials()
    rows = verdict_table([run])[["claim", "verdict", "measured [95%]"]]
    return {
        "valid_trials": len(run.valid_trials()),
        "trials": int((~trials["superseded"].astype(bool)).sum()),
        "verdicts": tuple(tuple(map(str, row)) for row in rows.to_numpy()),
    }
