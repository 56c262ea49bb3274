"""``perflab verdicts``: published against measured, over all experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.cli.console import console as make_console


def command(
    backend: Annotated[str, typer.Option(help="docker or process; both unless given")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="print a Markdown table")] = False,
) -> None:
    """Show every claim's verdict from the latest finished run of each experiment and backend."""
    from perflab import laboratory
    from perflab.reports.markdown import to_markdown
    from perflab.reports.verdicts import to_terminal, verdict_table

    runs = laboratory.latest_runs(backend)
    if not runs:
        print("no finished runs yet; 'make lab' makes some")
        return
    table = verdict_table(runs)
    if markdown:
        print(to_markdown(table), end="")
        return
    console = make_console()
    console.print(to_terminal(table))
    for run in runs:
        console.print(f"  {run.run_id}", markup=False, highlight=False)
