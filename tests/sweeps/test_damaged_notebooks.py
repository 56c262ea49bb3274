"""Notebooks that cannot begin, or whose parameters would not arrive, fail as one cell."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import NotebookFailed
from perflab.paths import notebook_file
from perflab.sweeps import attempt

NAME = "serialization"
Damage = Callable[[Path], None]


@pytest.fixture
def damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Damage:
    """Return what puts a damaged copy in the notebook's place."""

    def put(copy: Path) -> None:
        monkeypatch.setattr(attempt, "notebook_file", lambda _: copy)

    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    return put


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    book = json.loads(notebook_file(NAME).read_text())
    change(book)
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps(book))
    return path


def untagged(book: dict[str, Any]) -> None:
    for cell in book["cells"]:
        cell["metadata"].pop("tags", None)


def kept_by_another_editor(book: dict[str, Any]) -> None:
    """Take identifiers, kernel and language, as old editors do, and the tag."""
    untagged(book)
    book["metadata"].clear()
    book["nbformat_minor"] = 4
    for cell in book["cells"]:
        cell.pop("id", None)


@pytest.mark.slow
@pytest.mark.parametrize("change", [untagged, kept_by_another_editor])
def test_values_do_not_give_way_to_defaults_unnoticed(
    tmp_path: Path, damage: Damage, recwarn: pytest.WarningsRecorder, change: Any
) -> None:
    damage(changed(tmp_path, change))
    with pytest.raises(NotebookFailed, match="blocks = 3 was given, but the notebook has 8"):
        attempt.execute(NAME, {"blocks": 3})
    assert [str(one.message) for one in recwarn if "MissingID" in one.category.__name__] == []


def test_what_is_no_notebook_is_a_failure_of_its_cell(tmp_path: Path, damage: Damage) -> None:
    broken = tmp_path / "broken.ipynb"
    broken.write_text('{"cells": [')
    damage(broken)
    with pytest.raises(NotebookFailed, match="does not appear to be JSON"):
        attempt.execute(NAME, {"blocks": 3})


def kernel(folder: Path, words: str) -> str:
    """Write what Jupyter knows of the kernel, and return the folder for JUPYTER_PATH."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(words)
    return str(folder)


def test_the_kernel_of_another_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"argv": ["/elsewhere/bin/python3", "-m", "ipykernel"], "display_name": "other"}
    described = json.dumps({**words, "language": "python"})
    monkeypatch.setenv("JUPYTER_PATH", kernel(tmp_path, described))
    with pytest.raises(NotebookFailed, match="runs /elsewhere/bin/python3, and the lab") as caught:
        attempt.execute(NAME, {"blocks": 3})
    assert sys.executable in str(caught.value)
    assert "JUPYTER_PATH" in str(caught.value)


def test_a_kernel_that_cannot_be_read_is_a_failure_of_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", kernel(tmp_path, '{"argv": ['))
    with pytest.raises(NotebookFailed, match="JSONDecodeError"):
        attempt.execute(NAME, {"blocks": 3})
