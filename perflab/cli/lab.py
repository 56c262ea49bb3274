"""``perflab lab``: the main job, the experiments that are part of it, through papermill."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.papermill_job import Executed


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
    from perflab.numerals import counted
    from perflab.papermill_job import execute
    from perflab.parameters import parse_assignments
    from perflab.progress_bar import minutes
    from perflab.reports.verdicts import to_terminal, verdict_table
    from perflab.systems import experiments

    console = make_console()
    values = {**parse_assignments(parameter or []), "backend": backend}
    chosen = [each for each in experiments() if each.in_main_job]
    plans = [each.plan(each.check(values)) for each in chosen]
    total = sum(plan.blocks * len(plan.treatments) for plan in plans)
    counted_ones = counted(len(chosen), "experiment")
    console.print(f"{counted_ones}, {total} trials in all", highlight=False)
    began = time.monotonic()
    done = []
    for number, each in enumerate(chosen, start=1):
        console.print(f"[bold]{number}/{len(chosen)} {each.name}[/bold]")
        done.append(execute(each.name, values))
    spent = minutes(time.monotonic() - began)
    runs = [laboratory.open_run(item.run_id) for item in done]
    console.print()
    print_table(to_terminal(verdict_table(runs)))
    for item, run in zip(done, runs, strict=True):
        shown = f"{len(run.valid_trials())} of {len(run.trials())} trials valid"
        console.print(f"[bold]{item.name}[/bold]: {shown}", highlight=False)
        _tell_files(console, item)
    valid = sum(len(run.valid_trials()) for run in runs)
    console.print(f"{counted_ones} in {spent}: {valid} of {total} trials valid", highlight=False)


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
