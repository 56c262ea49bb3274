"""Figures know no system, and no function of a room has the name of a module there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import perflab

HOME = Path(perflab.__file__).parent
FIGURES = sorted((HOME / "figures").rglob("*.py"))
SHOWN = [
    *FIGURES,
    *sorted((HOME / "reports").glob("*.py")),
    *sorted((HOME / "systems").glob("*/figures/*.py")),
    *sorted((HOME / "systems").glob("*/views.py")),
]


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_figures_import_nothing_from_above(path: Path) -> None:
    imported = {
        name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [node.names[0].name])
    }
    above = ("perflab.systems", "perflab.reports", "perflab.experiments", "perflab.trials")
    assert not [name for name in imported if str(name).startswith(above)]
