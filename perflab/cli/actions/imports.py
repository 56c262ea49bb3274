"""Imports results of other load tools, and says what they lack."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from perflab import api
from perflab.cli.outputs import make_console, print_table
from perflab.recordings import Run
from perflab.recordings.imports.results import OWN_FILE, doubts


def import_files(files: list[str], tool: str) -> None:
    """Make a recording from files, each as ``[TREATMENT=]FILE``, and print what it has."""
    _print_imported(api.import_results(_groups(files), tool))


def _groups(words: list[str]) -> dict[str, list[Path]]:
    """Return the files by treatment; files without one belong to ``imported``."""
    groups: dict[str, list[Path]] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or Path(word).exists():
            name, file = "imported", word
        path = Path(file)
        groups.setdefault(name, []).append(path / OWN_FILE if path.is_dir() else path)
    return groups


def _print_imported(run: Run) -> None:
    console = make_console()
    parameters = run.record.parameters
    note = run.record.notes["import"]
    for line in (
        f"{run.run_id}: {parameters['tool']}, {parameters['format']}",
        *map(str, run.record.warnings),
        f"missing: {', '.join(note['missing'])}",
    ):
        console.print(Text(line))
    table = Table("treatment", "loads", "requests", "of them")
    for name, trials in run.trials().groupby("treatment", sort=False):
        requests = f"{trials['requests'].sum():,}"
        table.add_row(Text(str(name)), str(len(trials)), requests, doubts(trials))
    console.print()
    print_table(table)
    console.print(Text(f"\nTo see it: perflab show {run.run_id}"))
