"""The rooms of the package, held against the map of the documents: no circle, no import upward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "perflab"
MAP = (CHECKOUT / "docs" / "explanation" / "architecture.md").read_text()
# The rows of the map's table, from the top down: a room imports only from rooms below it.
ROOMS = re.findall(r"^\| `([a-z]+)/?` \|", MAP, re.M)
# Modules at the top of the package: the public face above the rooms, the others below them.
GROUND = ("parameters", "paths", "project", "errors", "credentials")
DEPTH = {room: depth for depth, room in enumerate((*ROOMS, *GROUND))}
# Rooms that know only these others.
KNOWS_ONLY = {
    "statistics": {"errors"},
    "recordings": {"statistics", "host", *GROUND},
    "analysis": {"recordings", "statistics", "errors"},
    "figures": {"analysis", "recordings", "statistics", "host", "errors"},
}
ENTRIES = 25
SYSTEMS = sorted(
    path.name for path in (PACKAGE / "systems").iterdir() if (path / "__init__.py").exists()
)
# What only one system knows.
SYSTEM_WORDS = re.compile(
    r"\b(chat|inference|logins?|channels?|acks?|plateaus?|codecs?|bcrypt|has_streams)\b", re.I
)
# An example in a docstring, and the shape of a curve.
INNOCENT = {
    "load/users.py": {"login"},
    "load/checks/stalls.py": {"plateau"},
}


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its full name."""
    return {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path, for_types: bool = False) -> frozenset[str]:
    """Return the modules of the package that a module imports, inside its functions too.

    Those that it imports only to name types count where they are asked for.
    """
    imported = set()
    for node in _nodes(ast.parse(path.read_text()), for_types):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in modules() else node.module for name in names}
    return frozenset(name for name in imported if name.partition(".")[0] == "perflab")


def _nodes(tree: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if for_types or not only_types:
            yield node
            yield from _nodes(node, for_types)


def room(module: str) -> str:
    return [*module.split("."), ""][1]


def test_the_map_shows_every_room() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert set(ROOMS) == folders | files - set(GROUND)
    assert 12 <= len(folders) <= 14


def test_imports_point_downward() -> None:
    faults = []
    for module, path in modules().items():
        mine = room(module)
        for other in {room(name) for name in imports(path, True)} - {mine, ""}:
            if mine and DEPTH[mine] >= DEPTH[other]:
                faults.append(f"{module} imports {other}")
            if other not in KNOWS_ONLY.get(mine, {other}):
                faults.append(f"{module} may not know {other}")
    assert faults == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    # A package that hands on names of its parts is no circle: they ask it for nothing.
    done: set[str] = set()
    for module in modules():
        _walk(module, (), done)


def _walk(module: str, way: tuple[str, ...], done: set[str]) -> None:
    assert module not in way, f"a circle: {' -> '.join([*way[way.index(module) :], module])}"
    if module not in done:
        for other in sorted(imports(modules()[module], True) - {module}):
            _walk(other, (*way, module), done)
        done.add(module)


def test_no_folder_is_too_full_to_see() -> None:
    folders = {PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())}
    full = {
        str(folder.relative_to(PACKAGE)): len(entries)
        for folder in folders - {path for path in folders if "__pycache__" in path.parts}
        if len(entries := [path for path in folder.iterdir() if path.name != "__pycache__"])
        > ENTRIES
    }
    assert full == {}


def test_no_room_but_systems_names_a_system() -> None:
    of_a_system = re.compile(rf"perflab\.systems\.({'|'.join(SYSTEMS)})\b")
    faults = []
    for module, path in modules().items():
        if room(module) == "systems":
            continue
        faults += [f"{module} imports {name}" for name in imports(path) if of_a_system.match(name)]
        words = {word.lower() for word in SYSTEM_WORDS.findall(path.read_text())}
        innocent = INNOCENT.get(path.relative_to(PACKAGE).as_posix(), set())
        faults += [f"{module} says {word}" for word in words - innocent]
    assert faults == []


def ways() -> dict[str, list[str]]:
    """Return the files of each way that the map describes, in order."""
    parts = re.split(r"^### ", MAP, flags=re.M)[1:]
    return {part.splitlines()[0]: re.findall(r"^\d+\. `([^`]+)`", part, re.M) for part in parts}


@pytest.mark.parametrize("way", ways())
def test_a_way_on_the_map_is_short_and_leads_from_file_to_file(way: str) -> None:
    files = ways()[way]
    assert 3 <= len(files) <= 8
    assert len(set(files)) == len(files), "the way goes back"
    paths = [CHECKOUT / file for file in files if file.endswith(".py")]
    for here, there in pairwise(paths):
        assert knows(here, there) or knows(there, here), (
            f"{here.name} and {there.name} are strangers"
        )


def knows(path: Path, other: Path) -> bool:
    """Return whether a module imports another, by way of its package too, or starts it."""
    name = name_of(other)
    if name in imports(path, True) or f'"{name}"' in path.read_text():
        return True
    package = other.parent / "__init__.py"
    return bool(names_from(package, name) & names_from(path, name_of(package)))


def names_from(path: Path, module: str) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    taken = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in taken for alias in node.names}
