"""Names: what a package takes from its modules is not called like one of its modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import perflab

HOME = Path(perflab.__file__).parent
MODULES = sorted(HOME.rglob("*.py"))


def exported(package: Path) -> Iterator[str]:
    """Yield the names that a package takes from inside its modules: not the modules themselves."""
    dotted = ".".join(["perflab", *package.relative_to(HOME).parts])
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != dotted:
            yield from (each.asname or each.name for each in node.names)


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
