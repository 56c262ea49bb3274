"""``perflab lab``: the main job, all core experiments through papermill."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.console import console as make_console
from perflab.cli.console import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.papermill_job import Executed

CORE = ("synchronous_commit", "sync_vs_async", "inference_runtime")


def command(
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="key=value for every notebook; repeatable"),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="auto (Docker where an engine answers), docker or process")
    ] = "auto",
) -> None:
    """Run the core experiments as notebooks; ends with verdicts, figures and notebooks."""
    from perflab import laboratory
    from perflab.papermill_job import execute
    from perflab.parameters import parse_assignments
    from perflab.progress import minutes
    from perflab.reports.verdicts import to_terminal, verdict_table
    from perflab.systems import experiment

    console = make_console()
    values = {**parse_assignments(parameter or []), "backend": backend}
    plans = {name: experiment(name).plan(experiment(name).check(values)) for name in CORE}
    total = sum(plan.blocks * len(plan.treatments) for plan in plans.values())
    experiments = "1 experiment" if len(CORE) == 1 else f"{len(CORE)} experiments"
    console.print(f"{experiments}, {total} trials in all", highlight=False)
    began = time.monotonic()
    done = []
    for number, name in enumerate(CORE, start=1):
        console.print(f"[bold]{number}/{len(CORE)} {name}[/bold]")
        done.append(execute(name, values))
    spent = minutes(time.monotonic() - began)
    runs = [laboratory.open_run(item.run_id) for item in done]
    console.print()
    print_table(to_terminal(verdict_table(runs)))
    for item, run in zip(done, runs, strict=True):
        shown = f"{len(run.valid_trials())} of {len(run.trials())} trials valid"
        console.print(f"[bold]{item.name}[/bold]: {shown}", highlight=False)
        _tell_files(console, item)
    valid = sum(len(run.valid_trials()) for run in runs)
    console.print(f"{experiments} in {spent}: {valid} of {total} trials valid", highlight=False)


def _tell_files(console: Console, item: Executed) -> None:
    """Name what an experiment left, by what it is for."""
    kinds = {
        "notebook": [item.notebook],
        "section for a design document": item.saved(".md"),
        "figures": item.saved(".svg", ".png"),
        "the tables they are drawn from": item.saved(".csv"),
    }
    for kind, paths in kinds.items():
        console.print(f"  {kind}:", highlight=False)
        for path in paths:
            console.print(f"    {path}", markup=False, highlight=False, soft_wrap=True)
