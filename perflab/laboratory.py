"""The public face of the lab: run an experiment, or show one that was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perflab import experiments, figures, recordings
from perflab.display import Lines, Shown
from perflab.errors import ParameterError
from perflab.experiments.experiment import RunParameters
from perflab.load import once
from perflab.notebook import assigned_names
from perflab.parameters import did_you_mean
from perflab.paths import figures_dir, runs_dir
from perflab.progress import progress
from perflab.recordings import Run
from perflab.reports import findings as findings_in_words
from perflab.reports.section import write_section
from perflab.reports.shown import (
    Saved,
    shown_findings,
    shown_runs,
    shown_summary,
    shown_table,
)
from perflab.reports.verdicts import verdict_table
from perflab.trials.client import conduct
from perflab.trials.conductor import Order
from perflab.trials.plan import RunPlan

BACKENDS = ("docker", "process")


def run(experiment: str, parameters: Mapping[str, Any] | RunParameters | None = None) -> Run:
    """Run an experiment and return its recording.

    Parameters
    ----------
    experiment : str
        Its name (``perflab experiments`` lists them).
    parameters : mapping, optional
        Checked before anything starts. ``from_run`` returns an existing run without measuring,
        ``resume`` finishes one.

    Raises
    ------
    ParameterError
        Lists every problem.
    PerflabError
        Nothing, or not everything, was measured; committed trials are kept.
    """
    chosen = experiments.experiment(experiment)
    if isinstance(parameters, RunParameters):
        checked = parameters
    else:
        checked = chosen.check(parameters or {})
    if checked.from_run:
        return _existing(checked.from_run, experiment)
    order = _order(chosen, checked)
    with progress() as show:
        return Run(conduct(order, show))


def _existing(reference: str, experiment: str) -> Run:
    found = open_run(reference)
    if found.record.experiment != experiment:
        raise ParameterError(
            "from_run",
            [f"run {found.run_id} is of '{found.record.experiment}', not '{experiment}'"],
        )
    return found


def _order(chosen: experiments.Experiment, checked: RunParameters) -> Order:
    if not checked.resume:
        return Order(
            plan=chosen.plan(checked),
            backend=checked.backend,
            runs=runs_dir(),
            wait_s=checked.wait_s,
        )
    found = _existing(checked.resume, chosen.name)
    return Order(
        plan=_plan_of(found, chosen),
        backend=found.record.backend,
        runs=runs_dir(),
        resume=found.path,
        wait_s=checked.wait_s,
    )


def _plan_of(found: Run, chosen: experiments.Experiment) -> RunPlan:
    """Return the plan of a recorded run: its own parameters, seed included."""
    return chosen.plan(chosen.check(found.record.parameters))


def notebook_parameters(experiment: str, namespace: Mapping[str, Any]) -> RunParameters:
    """Read and check a notebook's parameters from its ``globals()``.

    Names that papermill injected and that the experiment does not know are refused, with the
    nearest known name: papermill itself only warns.
    """
    chosen = experiments.experiment(experiment)
    known = list(chosen.parameters.model_fields)
    values = {name: namespace[name] for name in known if name in namespace}
    injected = assigned_names(namespace.get("In", []))
    problems = [
        f"unknown parameter '{name}'{did_you_mean(name, known)}"
        for name in injected
        if name not in known
    ]
    if problems:
        raise ParameterError(f"experiment '{experiment}'", problems)
    return chosen.check(values)


def open_run(reference: str | Path) -> Run:
    """Return a recorded run by path, id, unique prefix, ``latest`` or ``latest:<experiment>``."""
    return recordings.open_run(reference, runs_dir())


def runs() -> list[Run]:
    """Return all recorded runs, oldest first."""
    return recordings.list_runs(runs_dir())


def latest_runs(backend: str = "") -> list[Run]:
    """Return the latest finished run of every experiment on every backend, by name.

    Parameters
    ----------
    backend : str
        Only runs on this one: docker or process (empty: both).

    Raises
    ------
    ParameterError
        There is no such backend.
    """
    if backend not in ("", *BACKENDS):
        raise ParameterError("backend", [f"'{backend}' is not {' or '.join(BACKENDS)}"])
    newest = {
        (run.record.experiment, run.record.backend): run
        for run in runs()
        if run.record.state == "finished" and backend in ("", run.record.backend)
    }
    return [newest[key] for key in sorted(newest)]


def overview(backend: str = "") -> pd.DataFrame:
    """Return published against measured over all experiments, from :func:`latest_runs`."""
    return verdict_table(latest_runs(backend))


def findings(run: Run) -> Shown:
    """Show published against measured, with what each verdict rests on; ``.table`` is the data."""
    return shown_findings(run)


def summary(run: Run) -> Shown:
    """Show what each treatment did: trials, throughput, latency, CPU, flush cost."""
    return shown_summary(run)


def verdict(run: Run) -> Lines:
    """Return the verdicts in sentences that the data wrote; ``str`` gives a line each."""
    return Lines(findings_in_words.sentences(run))


def bottlenecks(run: Run) -> Lines:
    """Return where the time goes, and what changes are made of, in sentences."""
    return Lines(findings_in_words.bottlenecks(run))


def show(what: pd.DataFrame | Iterable[Run]) -> Shown:
    """Show a table, or a list of runs, whole: pandas would cut long cells."""
    return shown_table(what) if isinstance(what, pd.DataFrame) else shown_runs(what)


def save(run: Run) -> Saved:
    """Save every figure (SVG, PNG, its table) and the design-document section; return paths."""
    folder = figures_dir() / run.run_id
    paths = list(figures.save_all(run, folder))
    return Saved([*paths, write_section(run, folder, paths)])


def send_load(url: str, **options: Any) -> dict[str, Any]:
    """Send load to an address without an experiment; see :func:`perflab.load.once.send`."""
    return once.send(url, **options)
