"""``perflab claims``: what became of every published row."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from perflab.cli.outputs import print_shown
from perflab.statistics.in_words import counted

# More rows are listed in a line each, without reasons.
MOST_WHOLE = 60


def command(
    study: Annotated[str, typer.Option(help="only rows of this study")] = "",
    answer: Annotated[
        str,
        typer.Option(
            help="only rows with this kind of answer (contrast, view, setting, not comparable...) "
            "or this outcome (judged, not measured, a verdict...)"
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
) -> None:
    """Count what became of every published number and claim; list those of a study or an answer.

    Verdicts come from finished runs, one for each experiment and backend: among runs with the same
    parameters, the one with most complete blocks. A published number has no verdict if its estimand
    or load was not the measured one.

    Example: perflab claims --answer judged

    Example: perflab claims --check
    """
    from perflab.reports.ledger import (
        check_table,
        ledger,
        narrowed,
        shown_checks,
        shown_counts,
        shown_ledger,
        unmeasured,
    )

    if check:
        title = "What published numbers say by themselves"
        print_shown(replace(shown_checks(check_table(study)), heading=title))
        return
    entries = narrowed(ledger(study, backend), answer)
    if study or answer:
        brief = len(entries) > MOST_WHOLE
        shown = shown_ledger(entries, brief=brief)
        print_shown(replace(shown, heading="Published rows", notes=()))
        if brief:
            print("\nReasons and runs: narrow it by --answer, such as --answer 'not measured'")
        print()
    heading = f"What became of {counted(len(entries), 'published row')}"
    print_shown(replace(shown_counts(entries), heading=heading))
    if not (study or answer):
        print("", *unmeasured(entries), sep="\n")
        print("\nEach row with its result: perflab claims --study NAME, or --answer judged")
