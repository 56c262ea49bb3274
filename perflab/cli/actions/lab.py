"""The main job: its runs, their notebooks, and the page of their answers."""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from perflab import api, systems
from perflab.analysis.answers import Answer, answers_of
from perflab.analysis.noise import share_of_others
from perflab.cli.outputs import make_console, named_here
from perflab.cli.run import NO_TRIAL_COUNTS
from perflab.errors import ParameterError, RunNotFound
from perflab.host.files import replace_file
from perflab.parameters import did_you_mean, parse_assignments
from perflab.paths import figures_dir, is_checkout, runs_dir
from perflab.project import project
from perflab.recordings import REFERENCE, Run, open_run
from perflab.reports.answer_page import answer_page
from perflab.reports.methods import command
from perflab.reports.rules import findings_of
from perflab.statistics.in_words import as_share, counted
from perflab.sweeps.attempt import execute
from perflab.trials.experiment import Experiment
from perflab.trials.progress import minutes

PAGE_FOLDER = "lab"
# Nobody waits for more blocks than these; then the answer stands as it is.
MOST_BLOCKS = 60
Answered = tuple[Run, Path, list[Answer]]


def carry_out(assignments: Sequence[str], backend: str) -> None:
    """Run the main job with these parameters; print its answers, and write their page."""
    console = make_console()
    main_job = [
        experiment for experiment in systems.experiments() if experiment.main_job is not None
    ]
    values = main_job_values(main_job, {**parse_assignments(assignments), "backend": backend})
    plans = [experiment.plan(experiment.check(values[experiment.name])) for experiment in main_job]
    total = sum(plan.blocks * len(plan.treatments) for plan in plans)
    count_text = counted(len(main_job), "experiment")
    console.print(f"{count_text}, {total} trials in all", highlight=False)
    began = time.monotonic()
    runs = []
    for number, experiment in enumerate(main_job, start=1):
        console.print(f"[bold]{number}/{len(main_job)} {experiment.name}[/bold]")
        runs.append(api.run(experiment.name, values[experiment.name]))
    console.print("drawing figures, and showing the runs in their notebooks", highlight=False)
    names = [run.record.experiment for run in runs]
    shown = [{"from_run": run.run_id} for run in runs]
    # Processes, as a kernel finds the file of its progress in the environment of its process.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as processes:
        notebooks = [*processes.map(execute, names, shown)]
    answers = [
        (run, path, answers_of(run, findings_of(run)))
        for run, path in zip(runs, notebooks, strict=True)
    ]
    trust = _in_all(runs, minutes(time.monotonic() - began))
    for line in ("", *_table(answers), "", trust, *_links(answers)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if any(run.valid_trials().empty for run in runs):
        raise typer.Exit(NO_TRIAL_COUNTS)


def _in_all(runs: Sequence[Run], duration: str) -> str:
    """Return what ran, how long it took, and how far it may be trusted, in one line."""
    record = runs[0].record
    cores = int((record.environment.get("machine") or {}).get("cores", 0))
    trials = pd.concat([run.trials() for run in runs])
    valid = int((trials["state"] == "valid").sum())
    shares = [share for share in map(share_of_others, runs) if math.isfinite(share)]
    others = f" (others used {as_share(max(shares))})" if shares else ""
    parts = [duration, f"{record.backend} backend", f"{counted(cores, 'core')}{others}"]
    return f"{', '.join(parts)}, {valid} of {len(trials)} trials count"


def _table(answers: Sequence[Answered]) -> list[str]:
    """Return a line for each question, the reference's answer, and the way to decide it."""
    shipped = {
        answer.question: answer.text
        for run, *_ in answers
        for answer in _of_reference(run.record.experiment)
    }
    rows = [(run, answer) for run, _, of_run in answers for answer in of_run]
    width = max((len(answer.question) for _, answer in rows), default=0)
    lines = []
    for run, answer in rows:
        study = f"   (study: {answer.study})" if answer.study else ""
        lines.append(f"  {answer.question:{width}}  {answer.text}{study}")
        if answer.doubt:
            lines.append(f"  {'':{width}}  DOUBTFUL: {answer.doubt}")
        if text := shipped.get(answer.question):
            lines.append(f"  {'':{width}}  the reference: {text}")
        if 0 < answer.blocks <= MOST_BLOCKS:
            lines.append(f"  {'':{width}}  {way_out(run, answer.blocks)}")
    return lines


def _of_reference(experiment: str) -> list[Answer]:
    """Return the answers of the run that ships with the lab; none where there is none."""
    try:
        run = open_run(f"{REFERENCE}:{experiment}", runs_dir())
    except RunNotFound:
        return []
    return answers_of(run, findings_of(run))


def way_out(run: Run, blocks: int) -> str:
    """Return the command that asks a run's question in more blocks, and how long it takes."""
    record = run.record
    took_s = (
        datetime.fromisoformat(record.finished_at) - datetime.fromisoformat(record.created_at)
    ).total_seconds()
    length = minutes(took_s / max(1, record.blocks) * blocks)
    # What it has by default need not be typed; its order of trials is drawn anew, and with a number
    # of blocks there are no least and most.
    usual = systems.experiment(record.experiment).check({}).model_dump(mode="json")
    typed = {
        name: value
        for name, value in record.parameters.items()
        if value != usual.get(name) and name not in ("seed", "least_blocks", "most_blocks")
    }
    longer = record.model_copy(update={"parameters": {**typed, "blocks": blocks}})
    return f"-> {command(longer)}   (about {length})"


def _links(answers: Sequence[Answered]) -> list[str]:
    """Write the page of answers, and return where it is and what to do next."""
    folder = figures_dir() / PAGE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    answered = [
        (answer, notebook, systems.experiment(run.record.experiment).pictures)
        for run, notebook, of_run in answers
        for answer in of_run
    ]
    page = folder / "index.html"
    replace_file(page, answer_page("What the lab found", answered, folder).encode())
    notebooks = [notebook.stem for _, notebook, _ in answers]
    # A wheel has no Makefile.
    is_here = is_checkout() and project() is None
    opened = "make notebook" if is_here else f"perflab new notebook {notebooks[0]}"
    return [f"Look at  {named_here(page)}", f"Next     {opened}   ({' '.join(notebooks)})"]


def main_job_values(
    chosen: Iterable[Experiment], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the parameters of each experiment: given ones go to the experiments that have them."""
    fields = {experiment.name: experiment.parameters.model_fields for experiment in chosen}
    known = sorted({name for names in fields.values() for name in names})
    problems = [
        f"no experiment of the main job has '{name}'{did_you_mean(name, known)}"
        for name in given
        if name not in known
    ]
    if problems:
        raise ParameterError("parameters (-p)", problems)
    return {
        experiment.name: {
            **(experiment.main_job or {}),
            **{name: value for name, value in given.items() if name in fields[experiment.name]},
        }
        for experiment in chosen
    }
