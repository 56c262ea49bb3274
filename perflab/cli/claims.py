"""``perflab claims``: every published row, with its result here."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from perflab.cli.outputs import frame_table, make_console, print_table

if TYPE_CHECKING:
    from perflab.recordings.display import Shown


def command(
    study: Annotated[str, typer.Option(help="only rows of this study")] = "",
    answer: Annotated[
        str,
        typer.Option(
            help="only rows with this kind of answer (contrast, view, setting, not comparable...) "
            "or this outcome (judged, not measured yet, a verdict...)"
        ),
    ] = "",
    backend: Annotated[str, typer.Option(help="docker or process; both unless given")] = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="only check by rules such as Little's law which published numbers agree",
        ),
    ] = False,
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="only verdicts by run, your own experiments included"),
    ] = False,
) -> None:
    """Show every published number, claim, figure and target, with its result here.

    Verdicts come from finished runs, one for each experiment and backend: among runs with the same
    parameters, the one with most complete blocks. A published number has no verdict if its estimand
    or load was not the measured one.

    Example: perflab claims --answer judged

    Example: perflab claims --verdicts --backend docker

    Example: perflab claims --check
    """
    if verdicts and not check:
        _verdicts(backend)
        return
    from perflab.reports.ledger import (
        check_table,
        ledger,
        narrowed,
        shown_checks,
        shown_counts,
        shown_ledger,
    )

    if check:
        _print(shown_checks(check_table(study)), "What published numbers say by themselves")
        return
    entries = narrowed(ledger(study, backend), answer)
    rows, counts = shown_ledger(entries), shown_counts(entries)
    _print(replace(rows, notes=()), "Published rows and what became of them")
    print()
    _print(counts, "What became of them")


def _print(shown: Shown, title: str) -> None:
    """Print a table; an empty line separates rows whose cells have several lines."""
    table = frame_table(shown.text, {"finding": {"inconsistent": "bold red"}})
    table.title, table.title_justify = title, "left"
    table.leading = int(shown.text.map(lambda text: "\n" in text).to_numpy().any())
    for column in table.columns:
        column.justify = "right" if column.header in shown.right else "left"
    print_table(table)
    for note in shown.notes:
        print(f"\n{textwrap.fill(note, make_console().width)}")


def _verdicts(backend: str) -> None:
    from perflab.reports.runs import changed_parameters, judged_runs, verdicts_of
    from perflab.reports.verdicts import to_terminal

    chosen = judged_runs(backend)
    if not chosen:
        print("there are no finished runs yet; 'perflab lab' makes some")
        return
    table = verdicts_of(chosen)
    print_table(to_terminal(table))
    terminal = make_console()
    terminal.print("\nEach row is of one run, nothing is pooled:")
    for selected in chosen:
        parameters = changed_parameters(selected.run) or "defaults"
        blocks = f"{selected.complete_blocks} complete blocks"
        terminal.print(Text(f"  {selected.run.run_id}: {blocks}, {parameters}"))
        if selected.superseded:
            terminal.print(Text(f"    chosen instead of {selected.others}"))
