"""The start page of the lab: the experiments, the newest runs, and how to go on with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from perflab import systems
from perflab.errors import ExperimentError, RecordingError
from perflab.host.lock import holder
from perflab.paths import notebooks_dir, runs_dir
from perflab.recordings import Run, complete_blocks
from perflab.recordings.display import Shown

COLORS = {"finished": "#2a7ab0", "interrupted": "#b58900", "killed": "#b58900", "failed": "#c0392b"}
RESUMABLE = ("interrupted", "killed", "failed")
NO_RUNS = "There are no runs yet: open a notebook from the table above, and run all of its cells."


def shown_questions() -> Shown:
    """Return all experiments with their questions and notebooks; notes name the broken ones."""
    rows, faults = [], []
    for name in systems.names():
        try:
            experiment = systems.experiment(name)
        except ExperimentError as error:
            faults.append(f"left out: {error}")
        else:
            rows.append((experiment.system, experiment.question, _notebook_of(name)))
    table = pd.DataFrame(sorted(rows), columns=["system", "question", "notebook"], dtype=object)
    links = {name: name for name in table["notebook"] if name}
    return Shown(table, table, notes=faults, links=links)


def _notebook_of(name: str) -> str:
    file = f"{name}.ipynb"
    return file if (notebooks_dir() / file).exists() else ""


def newest(most: int) -> list[Run]:
    """Return the newest readable runs, newest first, and read no others.

    The name of a run begins with its start time.
    """
    newest_runs: list[Run] = []
    for path in sorted(runs_dir().glob("[!.]*/run.json"), reverse=True):
        if len(newest_runs) >= most:
            break
        with suppress(RecordingError):
            newest_runs.append(Run(path.parent))
    return newest_runs


def shown_newest(most: int) -> Shown:
    """Return the newest runs with their state, and what to type to see each or to go on."""
    rows = [_row(run) for run in newest(most)]
    columns = ["run", "state", "backend", "blocks", "trials valid", "next"]
    table = pd.DataFrame(rows, columns=columns, dtype=object)
    return Shown(table, table, marks=COLORS, notes=[] if rows else [NO_RUNS])


def _row(run: Run) -> Sequence[Any]:
    facts, state = dict(run.facts()), state_of(run)
    return (
        run.run_id,
        state,
        run.record.backend,
        f"{complete_blocks(run)} of {run.record.blocks}",
        facts["trials"].removesuffix(" valid"),
        _next(run, state),
    )


def _next(run: Run, state: str) -> str:
    if state == "finished":
        return f'from_run = "{run.run_id}"'
    return f'resume = "{run.run_id}"' if state in RESUMABLE else "it is being measured"


def state_of(run: Run) -> str:
    """Return a run's state; a run that says "running" while nobody measures was killed."""
    if run.record.state == "running" and holder() is None:
        return "killed"
    return run.record.state
