"""``perflab export``: runs as sections of a design document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.completing import run_references
from perflab.cli.show import hint_at_newer

STALE = 3


def command(
    references: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="id, prefix, path; latest or latest:EXPERIMENT that finished; one section each",
            autocompletion=run_references,
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder of the documents and their figures"),
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--format", help="md, html, pdf, docx, tex; several: md,html"),
    ] = "md",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="put the sections into this document: between its marks, or at its end",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="of the documents; otherwise the experiment's, or report")
    ] = "",
    views: Annotated[
        str, typer.Option(metavar="A,B", help="only the figures of these views; otherwise all")
    ] = "",
    brief: Annotated[
        bool,
        typer.Option("--brief", help="only question, published against measured, and figures"),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="also what was edited by hand between the marks")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help=f"write nothing; list what is stale, and end with {STALE}"),
    ] = False,
) -> None:
    """Write runs as sections of a document; again: the marked regions anew, your text untouched.

    Example: perflab export latest:synchronous_commit --to design --format md,html

    Example: perflab export latest --into design.md --brief --views throughput

    Example: perflab export latest --to design --check
    """
    from perflab import laboratory
    from perflab.errors import ParameterError
    from perflab.reports.exporting import Content, Target, export_runs, stale

    if to is None and into is None:
        raise ParameterError("perflab export", ["say where to: --to DIR, or --into FILE.md"])
    runs = [laboratory.open_run(reference) for reference in references]
    for reference, run in zip(references, runs, strict=True):
        hint_at_newer(reference, run)
    folder = to if to is not None else (into or Path()).resolve().parent
    target = Target(folder, into, name, overwrite)
    wanted, content = _listed(formats), Content(tuple(_listed(views)), brief)
    if not check:
        for path in export_runs(runs, target, wanted, content):
            print(path)
        return
    found = stale(runs, target, wanted, content)
    for text in found:
        print(f"stale: {text}")
    if found:
        print("perflab: the same command without --check writes them anew", file=sys.stderr)
        raise typer.Exit(STALE)


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
