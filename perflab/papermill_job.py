"""A notebook executed by papermill, with live progress and a result that is whole or absent."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import papermill
from papermill.exceptions import PapermillExecutionError

from perflab.durable import replace_file
from perflab.errors import PerflabError
from perflab.following import followed
from perflab.paths import figures_dir, notebooks_dir, project_root
from perflab.progress_bar import Terminal
from perflab.systems import experiment
from perflab.trials.events import Event, RunBegun


@dataclass(frozen=True)
class Executed:
    """A notebook that ran to its end, and the run it made."""

    name: str
    run_id: str
    notebook: Path

    def saved(self, *endings: str) -> list[Path]:
        """Return the files with one of these endings that were saved beside the notebook."""
        return sorted(path for path in self.notebook.parent.iterdir() if path.suffix in endings)


def execute(name: str, parameters: Mapping[str, Any]) -> Executed:
    """Execute an experiment's notebook; parameters are checked before a kernel starts.

    papermill writes its output in place, where a crash can leave half a file; so it writes beside
    and the finished notebook is renamed into the folder of the run's figures.

    Raises
    ------
    PerflabError
        A cell failed; the message is the error's own.
    """
    experiment(name).check(parameters)
    events: list[Event] = []
    terminal = Terminal(sys.stderr)

    def show(event: Event) -> None:
        events.append(event)
        terminal(event)

    with tempfile.TemporaryDirectory(prefix="perflab-notebook-") as folder:
        output = Path(folder) / f"{name}.ipynb"
        with followed(show):
            try:
                papermill.execute_notebook(
                    str(notebooks_dir() / f"{name}.ipynb"),
                    str(output),
                    parameters=dict(parameters),
                    cwd=str(project_root()),
                    progress_bar=False,
                    autosave_cell_every=0,
                    kernel_name="python3",
                )
            except PapermillExecutionError as error:
                raise PerflabError(f"notebook '{name}': {error.ename}: {error.evalue}") from None
        run_id = next(event.run_id for event in events if isinstance(event, RunBegun))
        target = figures_dir() / run_id / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, output.read_bytes())
    return Executed(name, run_id, target)
