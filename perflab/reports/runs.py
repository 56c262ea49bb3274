"""The runs of the lab: those that verdicts are taken from, and the newest with how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pandas as pd

from perflab import systems
from perflab.errors import ExperimentError, ParameterError
from perflab.host.lock import holder
from perflab.paths import notebooks_dir, runs_dir
from perflab.recordings import (
    REFERENCE,
    Run,
    complete_blocks,
    is_reference,
    list_runs,
    newest_runs,
    select,
)
from perflab.recordings.display import Shown
from perflab.recordings.schema import is_imported
from perflab.statistics.in_words import counted

BACKENDS = ("docker", "process")
COLORS = {"finished": "#2a7ab0", "interrupted": "#b58900", "killed": "#b58900", "failed": "#c0392b"}
RESUMABLE = ("interrupted", "killed", "failed")
NO_RUNS = "There are no runs yet: open a notebook from the table above, and run all of its cells."


def judged_runs(backend: str = "") -> list[Run]:
    """Return the user's runs that verdicts are taken from: on docker, on process, or both ("").

    Runs with the same parameters and machine asked the same question. The one with the most
    complete blocks is chosen (:func:`perflab.recordings.select`). ParameterError where there is no
    such backend.
    """
    if backend not in ("", *BACKENDS):
        raise ParameterError("backend", [f"'{backend}' is not {' or '.join(BACKENDS)}"])
    measured = [run for run in list_runs(runs_dir()) if not is_imported(run.record)]
    return select(run for run in measured if backend in ("", run.record.backend))


def measured_where(reference: Sequence[Run]) -> str:
    """Return in a sentence where, when and from which commits runs of the reference are."""
    records = [run.record for run in reference]
    names = {
        f"{machine.get('cpu', 'a machine')} ({counted(int(machine.get('cores', 1)), 'core')})"
        for machine in (record.environment.get("machine", {}) for record in records)
    }
    machines = ", ".join(sorted(names))
    days = sorted({record.created_at[:10] for record in records})
    commits = sorted({record.commit for record in records})
    return (
        f"{counted(len(records), 'run')} of the reference: measured on {machines}, "
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, commit {', '.join(commits)}. "
        "Runs of your own take their place."
    )


def questions() -> Shown:
    """Show every experiment with its question, linked to its notebook; notes name broken ones."""
    rows, faults = [], []
    for name in systems.names():
        try:
            experiment = systems.experiment(name)
        except ExperimentError as error:
            faults.append(f"left out: {error}")
            continue
        rows.append((experiment.system, name, experiment.question))
    table = pd.DataFrame(sorted(rows), columns=["system", "experiment", "question"], dtype=object)
    files = {name: f"{name}.ipynb" for name in table["experiment"]}
    links = {name: file for name, file in files.items() if (notebooks_dir() / file).exists()}
    return Shown(table, table, notes=faults, links=links)


def latest_runs(most: int = 10) -> Shown:
    """Show the newest runs, and what to type to see or resume each; no others are read."""
    rows = [
        (
            run.run_id,
            state_of(run),
            run.record.backend,
            f"{complete_blocks(run)} of {run.record.blocks}",
            dict(run.facts())["trials"].removesuffix(" valid"),
            _next(run, state_of(run)),
        )
        for run in islice(newest_runs("*", runs_dir()), most)
    ]
    columns = ["run", "state", "backend", "blocks", "trials valid", "next"]
    table = pd.DataFrame(rows, columns=columns, dtype=object)
    return Shown(table, table, marks=COLORS, notes=[] if rows else [NO_RUNS])


def _next(run: Run, state: str) -> str:
    if state == "finished":
        return f'from_run = "{run.run_id}"'
    return f'resume = "{run.run_id}"' if state in RESUMABLE else "it is being measured"


def state_of(run: Run) -> str:
    """Return a run's state; a run that says "running" while nobody measures it was killed.

    A run that ships with the lab is a "reference".
    """
    if is_reference(run):
        return REFERENCE
    if run.record.state == "running" and not _is_being_measured(run):
        return "killed"
    return run.record.state


def _is_being_measured(run: Run) -> bool:
    """Return whether the process that measures on this host now began the run's last session."""
    measuring, sessions = holder(), run.record.sessions
    if measuring is None or not sessions:
        return False
    return sessions[-1].pid == measuring.pid and sessions[-1].at >= measuring.since
