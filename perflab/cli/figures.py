"""``perflab figures``: a run's figures as files to put anywhere, and what to paste."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.completing import run_references
from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from perflab.figures import View
    from perflab.figures.style import Style
    from perflab.recordings import Run


def command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="id, prefix, path; latest or latest:EXPERIMENT that finished",
            autocompletion=run_references,
        ),
    ],
    views: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="all unless named")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="by default figures/runs/RUN")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="of svg, png and pdf, by commas")
    ] = "svg,png",
    theme: Annotated[Literal["light", "dark"], typer.Option(help="background")] = "light",
    transparent: Annotated[
        bool, typer.Option("--transparent", help="leave the background out")
    ] = False,
    width: Annotated[
        Literal["column", "page", "slide"],
        typer.Option(help="column: 3.4 inches, laid out anew; page: 7.2, slide: 10"),
    ] = "page",
    show_list: Annotated[bool, typer.Option("--list", help="only list the views")] = False,
) -> None:
    """Write figures of a run, each with its table, and print what to paste into a document.

    Files are called after their view, VIEW.svg beside VIEW.csv, whatever the run is: a document's
    links hold when they are written anew. Those for a column of a journal are called VIEW-column,
    those for a dark background VIEW-dark. What a column has no room to say, how to read the figure,
    is in the printed captions. A flame graph has no room in a column.

    Example: perflab figures latest effect --to doc/img --format svg,pdf
    """
    from perflab import laboratory
    from perflab.figures import save_view
    from perflab.figures.style import Style
    from perflab.paths import figures_dir

    style, wanted = Style(theme, transparent, width), _formats(formats)
    run = laboratory.open_run(reference)
    chosen = _chosen(run, views or [])
    if not views:
        _list(chosen)
    if show_list:
        return
    chosen = _fitting(chosen, style, named=bool(views))
    folder = _from_here(figures_dir() / run.run_id) if to is None else to
    for view in chosen:
        _tell(view, run, save_view(view, run, folder, wanted, style), style)


def _formats(text: str) -> list[str]:
    from perflab.errors import ParameterError
    from perflab.parameters import did_you_mean

    known = ("svg", "png", "pdf")
    given = list(dict.fromkeys(each.strip() for each in text.split(",")))
    wrong = [
        f"no format '{each}'{did_you_mean(each, known)}; there are: {', '.join(known)}"
        for each in given
        if each not in known
    ]
    if wrong:
        raise ParameterError("--format", wrong)
    return given


def _chosen(run: Run, names: list[str]) -> list[View]:
    from perflab.errors import ParameterError
    from perflab.parameters import did_you_mean
    from perflab.reports.pictures import views_of

    views = {view.name: view for view in views_of(run)}
    wrong = [
        f"the run has no view '{name}'{did_you_mean(name, views)}; it has: {', '.join(views)}"
        for name in names
        if name not in views
    ]
    if wrong:
        raise ParameterError("view", wrong)
    return [views[name] for name in dict.fromkeys(names)] if names else list(views.values())


def _fitting(views: list[View], style: Style, *, named: bool) -> list[View]:
    """Return the views that fit the style's width; refuse the others if they were asked for."""
    from perflab.errors import ParameterError
    from perflab.figures.view import TOO_NARROW

    wide = [view.name for view in views if style.sheet.narrow and not view.narrows]
    if wide and named:
        raise ParameterError("figures", [f"{name}: {TOO_NARROW}" for name in wide])
    if wide:
        print(f"\nnot written: {', '.join(wide)} ({TOO_NARROW})")
    return [view for view in views if view.name not in wide]


def _from_here(folder: Path) -> Path:
    """Return a path as a document in the working directory would name it."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _list(views: list[View]) -> None:
    table = Table("view", "shows")
    for view in views:
        table.add_row(Text(view.name), Text(view.title))
    print_table(table)


def _tell(view: View, run: Run, paths: list[Path], style: Style) -> None:
    from perflab.reports import snippets

    links: dict[str, list[Path]] = {}
    for path in paths:
        links.setdefault(path.suffix[1:], []).append(path)
    print()
    for path in paths:
        print(path)
    markdown = snippets.in_markdown(view, run, links)
    print(f"\n{markdown}\n\n{snippets.in_latex(view, run, links, style)}")
