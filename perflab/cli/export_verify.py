"""``perflab export --verify``: figures that were edited, are stale, or lost their table."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflab.reports.verifying import Verified


def verify_exports(paths: Sequence[Path]) -> bool:
    """Print what became of figures, tables and documents; return whether all are in order.

    Parameters
    ----------
    paths : sequence of path
        Folders or files; without any, ``figures/`` and ``docs/`` of the project.
    """
    from perflab.paths import project_root
    from perflab.reports.verifying import verify

    root = project_root()
    usual = [each for each in (root / "figures", root / "docs") if each.exists()]
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    found = verify(paths or usual, documents)
    table = Table("file", "state", "why")
    for each in sorted(found, key=lambda one: not one.finding):
        table.add_row(*map(Text, (_short(each.path), each.state, each.told)))
    if found:
        print_table(table)
    print(_counted(found))
    return not any(each.finding for each in found)


def _counted(found: list[Verified]) -> str:
    states = Counter(each.state for each in found)
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"{len(found)} checked: {told}" if found else "no figure of the lab is there"


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
