"""Names: what a module defines is not called like the module, nor like one beside its package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import perflab

HOME = Path(perflab.__file__).parent
MODULES = sorted(HOME.rglob("*.py"))


def defined(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def exported(package: Path) -> Iterator[str]:
    """Yield the names that a package takes from inside its modules: not the modules themselves."""
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != f"perflab.{package.name}":
            yield from (each.asname or each.name for each in node.names)


def test_nothing_has_the_name_of_its_module() -> None:
    alike = {str(path.relative_to(HOME)) for path in MODULES if path.stem in defined(path)}
    # `from perflab.analysis import knee` would be the function or the module, whichever came last.
    assert alike == set()


def test_no_package_hides_one_of_its_modules_behind_another_thing() -> None:
    hidden = {
        f"{package.relative_to(HOME)}: {name}"
        for package in {path.parent for path in MODULES if path.name == "__init__.py"}
        for name in exported(package)
        if (package / f"{name}.py").exists() or (package / name / "__init__.py").exists()
    }
    assert hidden == set()


def test_the_rooms_of_analysis_lie_one_above_the_other() -> None:
    rooms = ["methods", "curves", "trials", "treatments"]
    upward = {
        f"{room}/{path.stem} -> {node.module}"
        for place, room in enumerate(rooms)
        for path in (HOME / "analysis" / room).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for above in rooms[place + 1 :]
        if str(node.module).startswith(f"perflab.analysis.{above}")
    }
    assert upward == set()
