"""Commands as they are typed, without the seconds that a process of its own takes to import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.cli import main

Tell = Callable[..., tuple[str, str]]


@pytest.fixture
def perflab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Type a command; returns what it prints and what it says on standard error."""

    def typed(runs: Path, *words: str, code: int = 0, **variables: str) -> tuple[str, str]:
        for name, value in {"PERFLAB_RUNS": str(runs), "COLUMNS": "80", **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["perflab", *words])
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = int(end.code or 0)
        told, errors = capsys.readouterr()
        assert ended == code, told + errors
        return told, errors

    return typed
