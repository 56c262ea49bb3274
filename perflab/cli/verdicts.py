"""``perflab verdicts``: published against measured, over all experiments."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table


def command(
    backend: Annotated[str, typer.Option(help="docker or process; both unless given")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="print a Markdown table")] = False,
) -> None:
    """Show every claim's verdict, by experiment and backend, from finished runs.

    Of runs with the same parameters the one with most complete blocks is taken; below the table
    stands which ones that left out. Runs are never pooled.

    Example: perflab verdicts --backend docker --markdown
    """
    from perflab.chosen_runs import changed_parameters, judged_runs, verdicts_of
    from perflab.reports.markdown import to_markdown
    from perflab.reports.verdicts import to_terminal

    chosen = judged_runs(backend)
    if not chosen:
        print("no finished runs yet; 'make lab' makes some")
        return
    table = verdicts_of(chosen)
    if markdown:
        print(to_markdown(table), end="")
        return
    print_table(to_terminal(table))
    console = make_console()
    console.print("\nEach row is of one run, nothing is pooled:")
    for selected in chosen:
        parameters = changed_parameters(selected.run) or "defaults"
        blocks = f"{selected.complete_blocks} complete blocks"
        console.print(Text(f"  {selected.run.run_id}: {blocks}, {parameters}"))
        for reason in selected.reasons():
            console.print(Text(f"    taken instead of {reason}"))
