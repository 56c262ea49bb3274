"""Checks of every executed notebook: a finished run, its answer and its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perflab import api
from perflab.paths import figures_dir
from perflab.recordings import Run


def check_executed(name: str, done: Path) -> Run:
    """Require that an executed notebook measured, judged and saved figures; return its run."""
    run = api.runs()[-1]
    assert run.record.experiment == name
    assert run.record.state == "finished"
    saved = figures_dir() / run.run_id
    drawn = {path.stem for path in saved.glob("*.svg")}
    assert "effect" in drawn
    assert len(drawn) >= 2
    assert {path.stem for path in saved.glob("*.csv")} == drawn
    assert repr(api.answers(run)) in answer_of(done)
    return run


def answer_of(path: Path) -> str:
    """Return what the cell with the answer of an executed notebook shows, as text."""
    cells = json.loads(path.read_text())["cells"]
    (answer,) = [cell for cell in cells if "".join(cell["source"]).endswith("answers(run)")]
    # The progress stands before it.
    return text_of(answer["outputs"][-1])


def text_of(output: dict[str, Any]) -> str:
    """Return an output of a cell as plain text."""
    return "".join(output.get("data", {}).get("text/plain", ""))
