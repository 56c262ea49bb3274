"""What a notebook's kernel can tell of how its parameters came."""

from __future__ import annotations

import ast
from collections.abc import Iterable

PAPERMILL_MARK = "# Parameters"


def assigned_names(cells: Iterable[str]) -> list[str]:
    """Return the names assigned in the cells that papermill injected."""
    names: list[str] = []
    for cell in cells:
        if not cell.startswith(PAPERMILL_MARK):
            continue
        for statement in ast.parse(cell).body:
            if isinstance(statement, ast.Assign):
                names += [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return names
