"""Types commands within this process: a separate one takes seconds to import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.cli import main

Tell = Callable[..., tuple[str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of a user's own, where results go, and that services may read."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ("RUNS", "FIGURES", "SWEEPS", "REFERENCE"):
        monkeypatch.delenv(f"PERFLAB_{name}", raising=False)
    return tmp_path


@pytest.fixture
def perflab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Return a function that types a command and returns its output and its errors."""

    def typed(runs: Path, *words: str, code: int = 0, **variables: str) -> tuple[str, str]:
        for name, value in {"PERFLAB_RUNS": str(runs), "COLUMNS": "80", **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["perflab", *words])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        output, errors = capsys.readouterr()
        assert status == code, output + errors
        return output, errors

    return typed
