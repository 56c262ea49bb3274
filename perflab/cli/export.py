"""``perflab export``: runs as sections of a design document, or their figures as files."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import named_here, print_table
from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.recordings import Run

STALE = 3
FIGURES = "Figures as files (--figures)"
PICTURES = ("svg", "png", "pdf")


def command(
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="id or an end of it, path; latest or latest:EXPERIMENT; one section each",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder of the documents and their figures"),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="A,B",
            help="sections: of md, html, pdf, docx (md); figures: of svg, png, pdf (svg,png)",
        ),
    ] = "",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="put the sections into this document: between its marks, or to its end",
        ),
    ] = None,
    views: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="figures of these views; otherwise a page has one, and --full and --figures all",
        ),
    ] = "",
    full: Annotated[
        bool,
        typer.Option("--full", help="all there is, instead of one page: every table and figure"),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="replace also text that was edited by hand")
    ] = False,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures", help="write figures and tables, and no section", rich_help_panel=FIGURES
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="only check figures and tables in the folders or files RUN... (figures/ and "
            f"docs/); exit status {STALE} if one was edited or is stale",
        ),
    ] = False,
) -> None:
    """Write each run as a page of a document; your own text around the marks stays as it is.

    Example: perflab export latest:synchronous_commit --to design --format md,html

    Example: perflab export latest --into design.md

    Example: perflab export latest --figures --views effect --to doc/img --format svg,pdf

    Example: perflab export --verify figures docs
    """
    if verify:
        if not _verify([*map(Path, references or [])]):
            raise typer.Exit(STALE)
        return
    if not references:
        raise ParameterError("perflab export", ["name a run; 'perflab runs' lists them"])
    from perflab import api

    runs = [api.open_run(reference) for reference in references]
    if figures:
        for run in runs:
            folder = to / run.run_id if to is not None and len(runs) > 1 else to
            _export_figures(run, _split(views), folder, _split(formats or "svg,png"))
        return
    from perflab.reports.exporting import Content, Destination, export_runs

    if to is None and into is None:
        raise ParameterError(
            "perflab export", ["no place is given: add --to DIR, --into FILE.md or --figures"]
        )
    folder = to if to is not None else (into or Path()).resolve().parent
    content = Content(tuple(_split(views)), full)
    target = Destination(folder, into, overwrite)
    tell = partial(print, file=sys.stderr)
    for path in export_runs(runs, target, _split(formats or "md"), content, tell):
        print(path)


def _export_figures(run: Run, names: list[str], folder: Path | None, formats: list[str]) -> None:
    """Write the views of a run, each with its table; print their paths and captions."""
    from perflab.figures import save_view
    from perflab.parameters import unknown
    from perflab.paths import figures_dir
    from perflab.reports.figures import views_of
    from perflab.statistics.in_words import capitalized

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


def _verify(paths: list[Path]) -> bool:
    """Print the state of figures, tables and documents; return whether all are in order.

    Without a path it checks ``figures/`` and ``docs/`` of the project.
    """
    from perflab.paths import documents_dir
    from perflab.reports.verifying import verify

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


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
