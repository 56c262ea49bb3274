"""``perflab export --figures``: a run's figures as files to put anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perflab.cli.terminal import print_table
from perflab.errors import ParameterError
from perflab.parameters import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflab.figures import View
    from perflab.recordings import Run

FORMATS = ("svg", "png", "pdf")


def export_figures(
    run: Run, views: Sequence[str], folder: Path | None, formats: Sequence[str]
) -> None:
    """Write the views of a run, each with its table, and print where they are and their captions.

    Raises
    ------
    ParameterError
        A format or a view is unknown.
    """
    from perflab.figures import save_view
    from perflab.paths import figures_dir

    wrong = [_unknown("format", each, FORMATS) for each in formats if each not in FORMATS]
    if wrong:
        raise ParameterError("--format", wrong)
    chosen = _chosen(run, views)
    if not views:
        _list(chosen)
    place = _from_here(figures_dir() / run.run_id) if folder is None else folder
    for view in chosen:
        _tell(view, run, save_view(view, run, place, formats))


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    return f"no {kind} '{name}'{did_you_mean(name, known)}; there are: {', '.join(known)}"


def _chosen(run: Run, names: Sequence[str]) -> list[View]:
    from perflab.reports.pictures import views_of

    views = {view.name: view for view in views_of(run)}
    wrong = [_unknown("view", name, list(views)) for name in names if name not in views]
    if wrong:
        raise ParameterError("--views", wrong)
    return [views[name] for name in dict.fromkeys(names)] if names else list(views.values())


def _from_here(folder: Path) -> Path:
    """Return a path as a document in the working directory would name it."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _list(views: list[View]) -> None:
    table = Table("view", "shows")
    for view in views:
        table.add_row(Text(view.name), Text(view.title))
    print_table(table)


def _tell(view: View, run: Run, paths: list[Path]) -> None:
    from perflab.figures.origin import commit, n_text

    print()
    for path in paths:
        print(path)
    title = f"{view.title[:1].upper()}{view.title[1:]}"
    print(f"\n{title}. {n_text(run)}. Run {run.run_id}, commit {commit(run.record)}.")
