"""Types commands within this process: a separate one takes seconds to import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.cli import main

Tell = Callable[..., tuple[str, str]]


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
