"""``perflab claims``: what became of every published row."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from perflab.cli.flags import refuse_ignored
from perflab.cli.outputs import print_shown
from perflab.statistics.in_words import counted

# More rows are listed in a line each, without reasons.
MOST_WHOLE = 60


def command(
    study: Annotated[str, typer.Option(help="only rows of this study")] = "",
    outcome: Annotated[
        str,
        typer.Option(help="only rows of which this became: judged, not measured, as published..."),
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
    """Count what became of every published number and claim; list those of a study or an outcome.

    Verdicts come from finished runs, one for each experiment and backend: among runs with the same
    parameters, the one with most complete blocks. A published number has no verdict if its estimand
    or load was not the measured one.

    Example: perflab claims --outcome judged

    Example: perflab claims --check
    """
    if check:
        refuse_ignored("perflab claims", "--check", {"--outcome": outcome, "--backend": backend})
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
    entries = narrowed(ledger(study, backend), outcome)
    if study or outcome:
        brief = len(entries) > MOST_WHOLE
        shown = shown_ledger(entries, brief=brief)
        print_shown(replace(shown, heading="Published rows", notes=()))
        if brief:
            print("\nReasons and runs: narrow it by --outcome, such as --outcome 'not measured'")
        print()
    heading = f"What became of {counted(len(entries), 'published row')}"
    print_shown(replace(shown_counts(entries), heading=heading))
    if not (study or outcome):
        print("", *unmeasured(entries), sep="\n")
        print("\nEach row with its result: perflab claims --study NAME, or --outcome judged")
