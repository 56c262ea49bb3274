"""A notebook executed by papermill, with live progress and a result that is whole or absent."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import papermill
from papermill.exceptions import PapermillExecutionError

from perflab.errors import PerflabError
from perflab.experiments import experiment
from perflab.paths import figures_dir, notebooks_dir, project_root
from perflab.progress import PROGRESS_FILE, Event, Terminal


@dataclass(frozen=True)
class Executed:
    """A notebook that ran to its end, and the run it made."""

    name: str
    run_id: str
    notebook: Path

    def figures(self) -> list[Path]:
        """Return the figures saved beside the notebook."""
        return sorted(
            path for path in self.notebook.parent.iterdir() if path.suffix in (".svg", ".png")
        )


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
    with tempfile.TemporaryDirectory(prefix="perflab-notebook-") as folder:
        output = Path(folder) / f"{name}.ipynb"
        with _watched(Path(folder) / "progress") as events:
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
        run_id = next(event["run_id"] for event in events if event["event"] == "run")
        target = figures_dir() / run_id / f"{name}.ipynb"
        _move(output, target)
    return Executed(name, run_id, target)


def _move(source: Path, target: Path) -> None:
    """Copy across file systems, then rename, so that the target is whole or absent."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.write_bytes(source.read_bytes())
    temporary.rename(target)


@contextmanager
def _watched(path: Path) -> Iterator[list[Event]]:
    """Show the events that the notebook's kernel appends to a file, while the block runs."""
    path.touch()
    ended = threading.Event()
    events: list[Event] = []
    show = Terminal(sys.stderr)

    def follow() -> None:
        with path.open() as file:
            last = False
            while True:
                for line in file:
                    events.append(json.loads(line))
                    show(events[-1])
                if last:
                    return
                last = ended.wait(0.2)

    before = os.environ.get(PROGRESS_FILE)
    os.environ[PROGRESS_FILE] = str(path)
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield events
    finally:
        ended.set()
        thread.join(timeout=5)
        if before is None:
            del os.environ[PROGRESS_FILE]
        else:
            os.environ[PROGRESS_FILE] = before
