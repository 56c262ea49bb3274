"""``perflab import``: results of other load tools become a recording."""

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
        typer.Argument(metavar="[TREATMENT=]FILE...", help="what the tool wrote, a file per load"),
    ],
) -> None:
    """Take results of another load tool over as a recording: what it tells, as it tells it.

    Every file is one load and becomes a trial that is "not judged": the tool tells neither planned
    instants nor its own lag, stalls and CPU. docs/import.md says what each tool tells.

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
    console.print(Text(f"\nperflab show {run.run_id} shows it"))
