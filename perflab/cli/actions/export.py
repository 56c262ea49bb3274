"""Writes runs as sections or figures, and verifies written ones."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import named_here, print_table
from perflab.errors import ParameterError
from perflab.figures import save_view
from perflab.parameters import unknown
from perflab.paths import documents_dir, figures_dir
from perflab.recordings import Run
from perflab.reports.exporting import Content, Destination, export_runs
from perflab.reports.figures import views_of
from perflab.reports.verifying import verify
from perflab.statistics.in_words import capitalized

PICTURES = ("svg", "png", "pdf")


def export_sections(
    runs: Sequence[Run], target: Destination, formats: list[str], content: Content
) -> None:
    """Write runs as sections of documents, and print the paths of the files."""
    for path in export_runs(runs, target, formats, content, partial(print, file=sys.stderr)):
        print(path)


def export_figures(
    runs: Sequence[Run], names: list[str], to: Path | None, formats: list[str]
) -> None:
    """Write views of runs (empty: all); several runs have a folder each."""
    for run in runs:
        folder = to / run.run_id if to is not None and len(runs) > 1 else to
        _export_figures(run, names, folder, formats)


def _export_figures(run: Run, names: list[str], folder: Path | None, formats: list[str]) -> None:
    """Write the views of a run, each with its table; print their paths and captions."""
    views = {view.name: view for view in views_of(run)}
    problems = [*unknown("format", formats, PICTURES), *unknown("view", names, views)]
    if problems:
        raise ParameterError("perflab export --figures", problems)
    place = folder if folder is not None else Path(named_here(figures_dir() / run.run_id))
    for name in names or views:
        view = views[name]
        print("", *save_view(view, run, place, formats), sep="\n")
        title = capitalized(view.title)
        print(f"\n{title}. {run.n_text()}. Run {run.run_id}, commit {run.record.commit}.")


def verify_files(paths: list[Path]) -> bool:
    """Print the state of figures, tables and documents; return whether all are in order.

    Without a path it checks ``figures/`` and ``docs/`` of the project.
    """
    root = documents_dir()
    default = [folder for folder in (root / "figures", root / "docs") if folder.exists()]
    files = verify(paths or default)
    table = Table("file", "state", "why")
    for file in sorted(files, key=lambda file: not file.finding):
        table.add_row(*map(Text, (named_here(file.path), file.state, file.reason)))
    if files:
        print_table(table)
    states = Counter(file.state for file in files)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    if files:
        print(f"{len(files)} checked: {counts}")
    else:
        places = ", ".join(named_here(path) for path in paths or default) or "figures/ and docs/"
        print(f"there is no figure of the lab in {places}; name the folder that has some")
    return not any(file.finding for file in files)
