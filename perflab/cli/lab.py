"""``perflab lab``: the main job, all core experiments through papermill."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.cli.console import console as make_console
from perflab.cli.console import print_table

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
    from perflab.reports.verdicts import to_terminal, verdict_table

    console = make_console()
    values = {**parse_assignments(parameter or []), "backend": backend}
    done = []
    for number, name in enumerate(CORE, start=1):
        console.print(f"[bold]{number}/{len(CORE)} {name}[/bold]")
        done.append(execute(name, values))
    runs = [laboratory.open_run(item.run_id) for item in done]
    console.print()
    print_table(to_terminal(verdict_table(runs)))
    for item in done:
        console.print(f"[bold]{item.name}[/bold]")
        for path in (item.notebook, *item.figures()):
            console.print(f"  {path}", markup=False, highlight=False, soft_wrap=True)
