"""``perflab export``: runs as sections of a design document, or their figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.flags import refuse_ignored
from perflab.errors import ParameterError

STALE = 3
FIGURES = "Figures as files (--figures)"


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
    of_sections: dict[str, object] = {"--into": into, "--full": full, "--overwrite": overwrite}
    if verify:
        others = {"--to": to, "--format": formats, "--views": views, "--figures": figures}
        refuse_ignored("perflab export", "--verify", of_sections | others)
    elif figures:
        refuse_ignored("perflab export", "--figures", of_sections)
    from perflab import api
    from perflab.cli.actions import export
    from perflab.reports.exporting import Content, Destination

    if verify:
        if not export.verify_files([*map(Path, references or [])]):
            raise typer.Exit(STALE)
        return
    if not references:
        raise ParameterError("perflab export", ["name a run; 'perflab runs' lists them"])
    runs = [api.open_run(reference) for reference in references]
    if figures:
        export.export_figures(runs, _split(views), to, _split(formats or "svg,png"))
        return
    if to is None and into is None:
        raise ParameterError(
            "perflab export", ["no place is given: add --to DIR, --into FILE.md or --figures"]
        )
    folder = to if to is not None else (into or Path()).resolve().parent
    content = Content(tuple(_split(views)), full)
    target = Destination(folder, into, overwrite)
    export.export_sections(runs, target, _split(formats or "md"), content)


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
