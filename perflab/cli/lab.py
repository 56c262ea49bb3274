"""``perflab lab``: runs the experiments of the main job as notebooks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.outputs import make_console, print_table

if TYPE_CHECKING:
    from perflab.trials.experiment import Experiment


def command(
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--parameter", help="key=value, for the notebooks that have it; repeatable"
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="auto (Docker where an engine answers), docker or process")
    ] = "auto",
) -> None:
    """Run the core experiments as notebooks, and print verdicts, notebooks and sections.

    Long experiments run with shortened settings. The notebooks show them, and -p changes them.

    Example: perflab lab -p blocks=6 --backend process
    """
    from perflab import api
    from perflab.parameters import parse_assignments
    from perflab.reports.verdicts import to_terminal, verdict_table
    from perflab.statistics.in_words import counted
    from perflab.sweeps.notebook import execute
    from perflab.systems import experiments
    from perflab.trials.progress import minutes

    console = make_console()
    main_job = [experiment for experiment in experiments() if experiment.main_job is not None]
    values = main_job_values(main_job, {**parse_assignments(parameter or []), "backend": backend})
    plans = [experiment.plan(experiment.check(values[experiment.name])) for experiment in main_job]
    total = sum(plan.blocks * len(plan.treatments) for plan in plans)
    count_text = counted(len(main_job), "experiment")
    console.print(f"{count_text}, {total} trials in all", highlight=False)
    began = time.monotonic()
    executed = []
    for number, experiment in enumerate(main_job, start=1):
        console.print(f"[bold]{number}/{len(main_job)} {experiment.name}[/bold]")
        executed.append(execute(experiment.name, values[experiment.name]))
    duration = minutes(time.monotonic() - began)
    runs = [api.open_run(item.run_id) for item in executed]
    console.print()
    print_table(to_terminal(verdict_table(runs)))
    for item, run in zip(executed, runs, strict=True):
        valid_text = f"{len(run.valid_trials())} of {len(run.trials())} trials valid"
        console.print(f"[bold]{item.name}[/bold]: {valid_text}", highlight=False)
        for path in (item.notebook, item.notebook.parent / f"{item.run_id}.md"):
            console.print(f"  {path}", markup=False, highlight=False, soft_wrap=True)
    valid = sum(len(run.valid_trials()) for run in runs)
    console.print(f"{count_text} in {duration}: {valid} of {total} trials valid", highlight=False)


def main_job_values(
    chosen: Iterable[Experiment], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the parameters of each experiment: given ones go to the experiments that have them."""
    from perflab.errors import ParameterError
    from perflab.parameters import did_you_mean

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
