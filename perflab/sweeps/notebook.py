"""A notebook executed by papermill, with live progress and a result that is whole or absent."""

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
from perflab.trials.events import Event, RunBegun
from perflab.trials.progress import Terminal, followed

# What colours a traceback in a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# Who saves a figure writes to it all the time.
LATELY_S = 3.0


@dataclass(frozen=True)
class Executed:
    """A notebook that ran to its end, and the run it made."""

    name: str
    run_id: str
    notebook: Path

    def figures(self) -> list[Path]:
        """Return the figures that were saved beside the notebook, as SVG."""
        return sorted(self.notebook.parent.glob("*.svg"))


def execute(
    name: str,
    parameters: Mapping[str, Any],
    on_event: Callable[[Event], None] | None = None,
    failed: Path | None = None,
) -> Executed:
    """Execute an experiment's notebook; parameters are checked before a kernel starts.

    papermill writes its output in place, where a crash can leave half a file; so it writes beside
    and the finished notebook is renamed into the folder of the run's figures. One that did not come
    to its end is kept as ``failed``. ``on_event`` receives the events of the run, which else are
    shown on standard error.

    Raises
    ------
    NotebookFailed
        A cell failed, or the kernel died; the message is the error's own.
    """
    experiment(name).check(parameters)
    run_id = str(parameters.get("from_run") or parameters.get("resume") or "")
    tell = on_event or Terminal(sys.stderr)

    def hear(event: Event) -> None:
        nonlocal run_id
        if isinstance(event, RunBegun):
            run_id = event.run_id
        tell(event)

    with temporary("notebook") as folder:
        output = folder / f"{name}.ipynb"
        try:
            with followed(hear):
                _execute(name, output, parameters)
        except NotebookFailed:
            if failed is not None and output.exists():
                failed.parent.mkdir(parents=True, exist_ok=True)
                replace_file(failed, output.read_bytes())
            raise
        target = figures_dir() / run_id / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, output.read_bytes())
        # Of a kernel that was killed while it saved figures of this run.
        remove_broken_off(target.parent, age_s=LATELY_S)
    return Executed(name, run_id, target)


def _execute(name: str, output: Path, parameters: Mapping[str, Any]) -> None:
    # The kernel works in another folder, where another perflab.toml would be found, or none.
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
    # As RuntimeError Jupyter tells of a kernel that died, or never answered, before its first cell;
    # a DeadKernelError is one. The engine noted what the kernel said by itself.
    except RuntimeError as error:
        log = "\n".join(getattr(error, "__notes__", ()))
        raise NotebookFailed(name, DeadKernelError.__name__, str(error), log) from None
