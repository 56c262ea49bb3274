"""What somebody sees who opens the lab: what can be asked, what was run last, how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from perflab import systems
from perflab.display import Shown
from perflab.errors import ExperimentError, RecordingError
from perflab.experiments import RunParameters
from perflab.experiments.experiment import OF_THE_CALL
from perflab.host.lock import holder
from perflab.paths import notebooks_dir, runs_dir
from perflab.recordings import Run, complete_blocks

COLORS = {"finished": "#2a7ab0", "interrupted": "#b58900", "killed": "#b58900", "failed": "#c0392b"}
GO_ON = ("interrupted", "killed", "failed")
NO_RUNS = "There are no runs yet: open a notebook from the table above, and run all of its cells."


def shown_questions() -> Shown:
    """Return all experiments with their questions and notebooks; broken ones stand below."""
    rows, faults = [], []
    for name in systems.names():
        try:
            found = systems.experiment(name)
        except ExperimentError as error:
            faults.append(f"left out: {error}")
        else:
            rows.append((found.system, found.question, _notebook_of(name)))
    table = pd.DataFrame(sorted(rows), columns=["system", "question", "notebook"], dtype=object)
    links = {name: name for name in table["notebook"] if name}
    return Shown(table, table, notes=faults, links=links)


def _notebook_of(name: str) -> str:
    file = f"{name}.ipynb"
    return file if (notebooks_dir() / file).exists() else ""


def newest(most: int, experiment: str = "") -> list[Run]:
    """Return the newest readable runs, newest first, and read no others.

    Names of runs begin with the time at which they began.
    """
    found: list[Run] = []
    pattern = f"[!.]*-{experiment}-*/run.json" if experiment else "[!.]*/run.json"
    for path in sorted(runs_dir().glob(pattern), reverse=True):
        if len(found) >= most:
            break
        try:
            run = Run(path.parent)
        except RecordingError:
            continue
        if experiment in ("", run.record.experiment):
            found.append(run)
    return found


def shown_newest(most: int) -> Shown:
    """Return the newest runs: how far each came, and what to type to see it or to go on."""
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
    return f'resume = "{run.run_id}"' if state in GO_ON else "it is being measured"


def state_of(run: Run) -> str:
    """Return a run's state; one that says running while nobody measures was killed."""
    if run.record.state == "running" and holder() is None:
        return "killed"
    return run.record.state


def left_unfinished(experiment: str, checked: RunParameters) -> str:
    """Return what to say before a run is made, if the last one like it was not finished.

    Running all cells once more makes a new run. What the one before measured is kept, and going on
    with it may be what was meant.
    """
    for run in newest(1, experiment):
        state = state_of(run)
        if state in GO_ON and _same_asked(run, checked):
            return (
                f"the last run with these parameters was {state} after {len(run.trials())} trials, "
                f"and is kept; parameter resume='{run.run_id}' goes on with it instead"
            )
    return ""


def _same_asked(run: Run, checked: RunParameters) -> bool:
    # What was left open is decided anew by each run.
    decided = ("backend",) if checked.backend == "auto" else ()
    drawn = ("seed",) if checked.seed is None else ()
    asked = checked.model_dump(mode="json", exclude={*OF_THE_CALL, *decided, *drawn})
    own = {**run.record.parameters, "backend": run.record.backend}
    return all(own.get(name) == value for name, value in asked.items() if name in own)
