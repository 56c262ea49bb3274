"""No circle of imports among the modules that start, watch and remove services."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from perflab.paths import project_root

ROOMS = ("stacks", "sampling", "host")


def imports() -> dict[str, set[str]]:
    """Return module to the modules that it imports, wherever in it the import stands."""
    root = project_root()
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for room in ROOMS
        for path in (root / "perflab" / room).glob("*.py")
    }
    return {name: set(_imported(path)) & set(files) - {name} for name, path in files.items()}


def _imported(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def test_every_module_can_be_understood_before_those_that_import_it() -> None:
    graph = imports()
    assert "perflab.stacks.stack_folders" in graph["perflab.stacks.process_instance"]
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("room", ["host", "sampling"])
def test_what_measures_knows_nothing_of_stacks(room: str) -> None:
    for name, known in imports().items():
        if name.startswith(f"perflab.{room}."):
            assert not any(other.startswith("perflab.stacks.") for other in known), name
