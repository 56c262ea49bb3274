"""``perflab import``: makes a recording from results of other load tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import make_console, print_table

if TYPE_CHECKING:
    from perflab.recordings import Run


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[TREATMENT=]FILE...", help="results of the tool, one file per load"
        ),
    ],
) -> None:
    """Make a recording from the results of another load tool.

    Each file is one load and becomes one trial. Trials are "not judged", because the files lack
    planned instants and the tool's own lag, stalls and CPU. docs/import.md lists what is read.

    Example: perflab import k6.json

    Example: perflab import a=A1.txt a=A2.txt b=B1.txt b=B2.txt
    """
    from perflab import api

    _print(api.import_results(_groups(files)))


def _groups(words: list[str]) -> dict[str, list[Path]]:
    """Return the files by treatment; files without one belong to ``imported``."""
    groups: dict[str, list[Path]] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or Path(word).exists():
            name, file = "imported", word
        groups.setdefault(name, []).append(Path(file))
    return groups


def _print(run: Run) -> None:
    console = make_console()
    parameters = run.record.parameters
    note = run.record.notes["import"]
    for line in (
        f"{run.run_id}: {parameters['tool']}, {parameters['format']}",
        *map(str, run.record.warnings),
        f"missing: {', '.join(note['missing'])}",
    ):
        console.print(Text(line))
    table = Table("treatment", "loads", "requests")
    for name, trials in run.trials().groupby("treatment", sort=False):
        table.add_row(Text(str(name)), str(len(trials)), f"{trials['requests'].sum():,}")
    console.print()
    print_table(table)
    console.print(Text(f"\nTo see it: perflab show {run.run_id}"))
