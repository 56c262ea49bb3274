"""Executes a notebook by papermill, with live progress and a result that is whole or absent."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from perflab.errors import NotebookFailed
from perflab.host.files import remove_broken_off, replace_file, temporary
from perflab.paths import figures_dir, foreign_environment, notebook_file, project_root
from perflab.systems import experiment
from perflab.trials.progress import Event, RunBegun, Terminal, followed

# The escape sequences that colour a traceback in a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# A process that saves a figure writes to it without such a pause.
LATELY_S = 3.0


@dataclass(frozen=True)
class Executed:
    """A notebook that ran to its end, and the run that it made."""

    name: str
    run_id: str
    notebook: Path


def execute(
    name: str,
    parameters: Mapping[str, Any],
    on_event: Callable[[Event], None] | None = None,
    failed: Path | None = None,
) -> Executed:
    """Execute an experiment's notebook; parameters are checked before a kernel starts.

    papermill writes its output in place, where a crash can leave half a file. So it writes to a
    temporary folder, and the finished notebook replaces the one in the folder of the run's figures.
    A notebook that failed is kept as ``failed``. ``on_event`` receives the events of the run; by
    default they are shown on standard error.

    Raises
    ------
    NotebookFailed
        A cell failed, or the kernel died; the message is that of the error.
    """
    experiment(name).check(parameters)
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
        except NotebookFailed:
            if failed is not None and output.exists():
                failed.parent.mkdir(parents=True, exist_ok=True)
                replace_file(failed, output.read_bytes())
            raise
        target = figures_dir() / run_id / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, output.read_bytes())
        # A kernel that was killed while it saved figures left unfinished files.
        remove_broken_off(target.parent, age_s=LATELY_S)
    return Executed(name, run_id, target)


def _execute(name: str, output: Path, parameters: Mapping[str, Any]) -> None:
    # The kernel works in another folder and would find another perflab.toml, or none.
    os.environ.update(foreign_environment())
    try:
        papermill.execute_notebook(
            str(notebook_file(name)),
            str(output),
            parameters=dict(parameters),
            cwd=str(project_root()),
            progress_bar=False,
            autosave_cell_every=0,
            kernel_name="python3",
        )
    except PapermillExecutionError as error:
        log = "\n".join(ESCAPES.sub("", line) for line in error.traceback)
        raise NotebookFailed(name, error.ename, error.evalue, log) from None
    # Jupyter raises RuntimeError (DeadKernelError is one) for a kernel that died or never answered.
    # The engine added the kernel's own output as a note.
    except RuntimeError as error:
        log = "\n".join(getattr(error, "__notes__", ()))
        raise NotebookFailed(name, DeadKernelError.__name__, str(error), log) from None
