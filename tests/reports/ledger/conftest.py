"""Runs of the durability study whose truth is planted, at the published load and at others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.recordings import Run
from tests.support.synthetic import write_run
from tests.systems.planned import plan_of

Write = Callable[..., Run]
Bring = Callable[..., object]
HEAD = "study,place,scenario,measure,unit,value,kind,answered_by,experiment,item,reason"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a run with the experiment's contrasts of today."""
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path))

    def written(run_id: str, changes: dict[str, object] | None = None, **planted: object) -> Run:
        plan = plan_of("synchronous_commit", **{"seed": 1, **(changes or {})})
        words: dict[str, object] = {
            "contrasts": plan.contrasts, "parameters": plan.parameters, "noise": 0.01,
        }  # fmt: skip
        return write_run(tmp_path, run_id=run_id, requests=40, **{**words, **planted})  # type: ignore[arg-type]

    return written


@pytest.fixture
def bring(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """Return a function that brings a foreign system with a row for each kind and answer.

    Each is the last five cells of its row: ``kind,answered_by,experiment,item,reason``.
    """
    folder = tmp_path_factory.mktemp("systems") / "foreign" / "published"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PERFLAB_SYSTEMS", str(folder.parents[1]))

    def brought(*kinds_and_answers: str) -> None:
        numbered = enumerate(kinds_and_answers)
        lines = [f"own,table,a{number},rate,requests/s,5,{cells}" for number, cells in numbered]
        (folder / "own.csv").write_text("\n".join([HEAD, *lines]))

    return brought
