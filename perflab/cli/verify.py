"""``perflab verify``: figures that were edited, are stale, or lost their table."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from perflab.reports.verifying import Verified

FOUND = 3


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="folders or files; figures/ and docs/"),
    ] = None,
    stamp: Annotated[
        bool,
        typer.Option("--stamp", help="first give figures that an older lab wrote their digest"),
    ] = False,
) -> None:
    """Check that figures are what the lab wrote, and what their runs and tables still give.

    Exit status 3 when a figure was edited, is stale, or is without its table, when a table is
    without figure, or when a document names an image that is not there (docs/figures.md).

    Example: perflab verify figures docs
    """
    from perflab.paths import project_root
    from perflab.reports.verifying import stamp_unstamped, verify

    root = project_root()
    usual = [each for each in (root / "figures", root / "docs") if each.exists()]
    places = paths or usual
    if stamp:
        for path in stamp_unstamped(places):
            print(f"stamped {_short(path)}")
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    found = verify(places, documents)
    table = Table("file", "state", "why")
    for each in sorted(found, key=lambda one: not one.finding):
        table.add_row(*map(Text, (_short(each.path), each.state, each.told)))
    if found:
        print_table(table)
    print(_counted(found))
    if any(each.finding for each in found):
        raise typer.Exit(FOUND)


def _counted(found: list[Verified]) -> str:
    states = Counter(each.state for each in found)
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"{len(found)} checked: {told}" if found else "no figure of the lab is there"


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
