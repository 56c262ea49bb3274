"""What a notebook's kernel can tell of how its parameters came."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

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


def given_values(
    defaults: Mapping[str, Any], namespace: Mapping[str, Any], injected: Iterable[str]
) -> dict[str, Any]:
    """Return what was given by somebody: injected by papermill, or changed in the notebook.

    A notebook's parameters cell assigns every name, so what is equal to its default was left alone.
    """
    injected = set(injected)
    return {
        name: namespace[name]
        for name, default in defaults.items()
        if name in namespace and (name in injected or _as_tuple(namespace[name]) != default)
    }


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
