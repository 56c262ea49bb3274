"""The graph of the package: imports point downward, no circle, and the core names no system."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "perflab"
# From the top down: a room imports from those in the lines below it, never from above.
LAYERS = (
    ("cli",),
    ("cluster", "scaffold", "doctor"),
    ("sweeps",),
    ("papermill_engine", "papermill_job"),
    ("laboratory",),
    ("ledger",),
    ("chosen_runs", "progress", "asked", "starting"),
    ("reports",),
    ("systems",),
    ("experiments",),
    ("trials", "figures", "imports"),
    ("instruments", "analysis", "published"),
    ("stacks", "load"),
    ("sampling",),
    ("host", "recordings", "throughput"),
    ("durable",),
    ("parameters", "percentiles"),
    ("paths",),
    ("user_file",),
    ("display", "numerals", "errors"),
)
DEPTH = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}
# What these know besides is asked of nobody else.
ONLY = {
    "analysis": {"errors", "numerals", "percentiles", "recordings"},
    "figures": {"analysis", "durable", "errors", "numerals", "percentiles", "recordings"},
}
SYSTEMS = sorted(
    path.name for path in (PACKAGE / "systems").iterdir() if (path / "__init__.py").exists()
)
# What only one system knows.
WORDS = re.compile(
    r"\b(chat|inference|logins?|channels?|acks?|plateaus?|codecs?|bcrypt|has_streams)\b", re.I
)
# An example of a script, a curve, and the colour of a phase that has this name.
INNOCENT = {
    "load/users.py": {"login"},
    "load/stalls.py": {"plateau"},
    "figures/plots/time_breakdown.py": {"inference"},
}


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def names() -> frozenset[str]:
    return frozenset(map(name_of, modules()))


@cache
def imported(path: Path, only_at_import: bool = False) -> set[str]:
    """Return what a module of the package imports from it, as full names of modules."""
    known = names()
    tree = ast.parse(path.read_text())
    nodes = tree.body if only_at_import else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            longer = {f"{node.module}.{each.name}" for each in node.names}
            found |= {each if each in known else node.module for each in longer}
    return {each for each in found if each.partition(".")[0] == "perflab"}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", [*modules()], ids=name_of)
def test_imports_point_downward(path: Path) -> None:
    own = room(name_of(path))
    for other in {room(each) for each in imported(path)} - {own, ""}:
        assert not own or DEPTH[own] < DEPTH[other], f"{own} imports {other}"
        assert other in ONLY.get(own, {other}), f"{own} may not know {other}"


def test_every_room_has_its_place() -> None:
    rooms = {room(name_of(path)) for path in modules()} - {"", "__init__"}
    assert rooms == set(DEPTH)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name_of(path): imported(path, only_at_import=True) for path in modules()}
    done: set[str] = set()
    for start in graph:
        _walk(start, graph, [], done)


def _walk(module: str, graph: dict[str, set[str]], way: list[str], done: set[str]) -> None:
    assert module not in way, f"a circle: {' -> '.join([*way[way.index(module) :], module])}"
    if module in done:
        return
    for other in graph.get(module, set()):
        # A package that names its own parts is no circle: they do not ask it for anything.
        _walk(other, graph, [*way, module], done)
    done.add(module)


@pytest.mark.parametrize(
    "path", [each for each in modules() if "systems" not in each.parts[-4:-1]], ids=name_of
)
def test_the_core_names_no_system(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    if place.startswith("systems/"):
        return
    for each in imported(path):
        assert not re.match(rf"perflab\.systems\.({'|'.join(SYSTEMS)})\b", each), each
    found = {word.lower() for word in WORDS.findall(path.read_text())}
    assert found <= INNOCENT.get(place, set())
