"""Executes notebooks: one for itself, or as an attempt at a cell with its entry for the journal."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import papermill
from jupyter_client.kernelspec import get_kernel_spec
from nbclient.exceptions import DeadKernelError
from nbformat.warnings import MissingIDFieldWarning
from papermill.exceptions import PapermillExecutionError

from perflab import credentials
from perflab.analysis.noise import doubt
from perflab.analysis.validity import summed_reasons
from perflab.errors import NotebookFailed, PerflabError, RecordingError
from perflab.host.files import explained, remove_broken_off, replace_file
from perflab.host.temporary_folders import temporary
from perflab.load.literals import by_reference
from perflab.paths import figures_dir, foreign_environment, notebook_file, project_root, runs_dir
from perflab.recordings import Run, open_run
from perflab.reports.findings import readable_findings
from perflab.reports.rules import findings_of
from perflab.sweeps.cells import Cell
from perflab.sweeps.folder import ELSEWHERE, INTERRUPTED, KEPT, NO_TRIAL_COUNTS, AttemptEnded
from perflab.systems import experiment
from perflab.trials.progress import Event, RunBegun, Terminal, followed

# Errors of services, images, the host and the lab's processes: another attempt may succeed.
INFRASTRUCTURE = frozenset(
    {
        "BackendUnavailable", "ConductorLost", "DeadKernelError", "HookFailed", "HostBusy",
        "ImageError", "LoadError", "ServiceFailed", "StackError",
    }
)  # fmt: skip
# After a kill the load, the services and the host's lock may take this long to end.
AFTER_A_KILL_S = 60.0
# The escape sequences that colour a traceback in a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
KERNEL = "python3"
# A process that saves a figure writes to it without such a pause.
LATELY_S = 3.0


def execute(
    name: str,
    parameters: Mapping[str, Any],
    on_event: Callable[[Event], None] | None = None,
    failed: Path | None = None,
) -> Path:
    """Execute an experiment's notebook, and return it in the folder of its run's figures.

    Parameters are checked before a kernel starts. papermill writes its output in place, where a
    crash can leave half a file. So it writes to a temporary folder, and the finished notebook goes
    from there to the folder, which has the run's id as its name.
    A notebook that failed is kept as ``failed``. ``on_event`` receives the events of the run; by
    default they are shown on standard error.

    Raises
    ------
    NotebookFailed
        A cell failed, the kernel died, or it cannot begin; the message is that of the error.
    """
    experiment(name).check(parameters)
    parameters = by_reference(parameters)
    run_id = str(parameters.get("from_run") or parameters.get("resume") or "")
    forward = on_event or Terminal(sys.stderr)

    def note_run(event: Event) -> None:
        nonlocal run_id
        if isinstance(event, RunBegun):
            run_id = event.run_id
        forward(event)

    with temporary("notebook") as folder:
        output = folder / f"{name}.ipynb"
        try:
            with followed(note_run):
                _execute(name, output, parameters)
        except NotebookFailed as error:
            error.run_id = run_id
            if failed is not None and output.exists():
                failed.parent.mkdir(parents=True, exist_ok=True)
                replace_file(failed, output.read_bytes())
            raise
        target = figures_dir() / run_id / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, output.read_bytes())
        # A kernel that was killed while it saved figures left unfinished files.
        remove_broken_off(target.parent, age_s=LATELY_S)
    return target


def _execute(name: str, output: Path, parameters: Mapping[str, Any]) -> None:
    # The kernel works in another folder and would find another perflab.toml, or none.
    os.environ.update(foreign_environment())
    os.environ.update(PERFLAB_RUNS=str(runs_dir()), PERFLAB_FIGURES=str(figures_dir()))
    # The notebook has references, and its kernel looks for their values in its environment.
    os.environ.update(credentials.kept())
    # Notebooks that other editors saved have cells without identifiers, which change nothing.
    warnings.simplefilter("ignore", MissingIDFieldWarning)
    try:
        refuse_other_python(name)
        papermill.execute_notebook(
            str(notebook_file(name)),
            str(output),
            parameters=dict(parameters),
            cwd=str(project_root()),
            progress_bar=False,
            autosave_cell_every=0,
            kernel_name=KERNEL,
            language="python",
        )
    except PapermillExecutionError as error:
        log = "\n".join(ESCAPES.sub("", line) for line in error.traceback)
        raise NotebookFailed(name, error.ename, error.evalue, log) from None
    # Jupyter raises RuntimeError (DeadKernelError is one) for a kernel that died or never answered.
    # The engine added the kernel's own output as a note.
    except RuntimeError as error:
        log = "\n".join(getattr(error, "__notes__", ()))
        raise NotebookFailed(name, DeadKernelError.__name__, str(error), log) from None
    except NotebookFailed:
        raise
    # Before the first cell: the file is no notebook, a kernel cannot start, a disk is full.
    except Exception as error:
        raise NotebookFailed(name, type(error).__name__, str(error)) from error


def refuse_other_python(name: str) -> None:
    """Refuse a kernel of another Python: other code than this would measure."""
    # Jupyter takes a name without a folder for the Python that it runs on.
    program = Path(get_kernel_spec(KERNEL).argv[0])
    own = Path(sys.executable)
    if program.is_absolute() and program.parent.resolve() != own.parent.resolve():
        text = f"the kernel '{KERNEL}' runs {program}, and the lab {own}; "
        text += "'jupyter kernelspec list' shows where it is found: look at JUPYTER_PATH"
        raise NotebookFailed(name, "OtherPython", text)


def resume_parameters(run_id: str) -> dict[str, str]:
    """Return the parameter by which a cell goes on with a run; none where it is not here.

    A finished run is shown: the failure came after it, and nothing is measured twice.
    """
    try:
        record = open_run(run_id, runs_dir()).record
    except RecordingError:
        return {}
    return {"from_run" if record.state == "finished" else "resume": run_id}


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
    # The previous attempt may have been killed before its run was written down.
    wait_s = max(wait_s, AFTER_A_KILL_S) if number > 1 else wait_s
    saved = folder / f"{cell.notebook}-attempt-{number}"
    begin = time.monotonic()
    end: dict[str, Any]
    try:
        parameters: dict[str, Any] = {**cell.parameters, **resumed, "wait_s": wait_s}
        notebook = execute(cell.notebook, parameters, on_event, saved.with_suffix(".ipynb"))
        run_id = notebook.parent.name
        end = _result(notebook)
    except KeyboardInterrupt:
        end = interruption(cell)
    except PerflabError as error:
        if not isinstance(error, NotebookFailed):
            error = NotebookFailed(cell.notebook, type(error).__name__, str(error))
        run_id = error.run_id or run_id
        is_interrupted = error.kind in ("KeyboardInterrupt", INTERRUPTED)
        end = interruption(cell) if is_interrupted else _failure(saved, error)
    seconds = round(time.monotonic() - begin, 1)
    return AttemptEnded(cell=cell.id, attempt=number, seconds=seconds, run_id=run_id, **end)


def interruption(cell: Cell, by: str = "") -> dict[str, Any]:
    """Return the end of an interrupted cell for the journal; ``by`` names the signal."""
    error = f"cell '{cell.label}' was interrupted{f' by {by}' if by else ''}"
    return {"done": False, "kind": INTERRUPTED, "error": error, "infrastructure": False}


def _failure(saved: Path, error: NotebookFailed) -> dict[str, Any]:
    """Write the log of a failed attempt, and return its end."""
    log, notebook = saved.with_suffix(".log"), saved.with_suffix(".ipynb")
    with explained(log, KEPT, ELSEWHERE):
        saved.parent.mkdir(parents=True, exist_ok=True)
        replace_file(log, f"{error}\n{error.log}\n".encode())
    return {
        "done": False,
        "kind": error.kind,
        "error": error.text,
        "infrastructure": error.kind in INFRASTRUCTURE,
        "log": str(log),
        "notebook": str(notebook) if notebook.exists() else "",
    }


def _result(notebook: Path) -> dict[str, Any]:
    """Return the results of a finished run, so that the index need not open every run again.

    A run without a valid trial is a failure: another attempt measures anew.
    """
    run = Run(runs_dir() / notebook.parent.name)
    rows = readable_findings(findings_of(run))[["claim", "verdict", "measured [95%]"]]
    trials, valid = run.current_trials(), len(run.valid_trials())
    end = {
        "done": valid > 0,
        "notebook": str(notebook),
        "valid_trials": valid,
        "trials": len(trials),
        "doubt": doubt(run),
        "verdicts": tuple(tuple(map(str, row)) for row in rows.to_numpy()),
    }
    if valid:
        return end
    why = summed_reasons(trials["reasons"]) or "it has none"
    error = f"no trial of the run counts: {why}"
    return {**end, "kind": NO_TRIAL_COUNTS, "error": error}
