"""Checks of every executed notebook: a finished run, its verdict and its figures."""

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
    assert verdict_of(done) == repr(api.verdict(run))
    cells = json.loads(done.read_text())["cells"]
    (answer,) = [cell for cell in cells if "".join(cell["source"]).endswith("answers(run)")]
    assert repr(api.answers(run)) in "".join(text_of(output) for output in answer["outputs"])
    return run


def verdict_of(path: Path) -> str:
    """Return the verdict that an executed notebook shows, as text."""
    (cell,) = [
        cell
        for cell in json.loads(path.read_text())["cells"]
        if "".join(cell["source"]) == "perflab.verdict(run)"
    ]
    (output,) = cell["outputs"]
    assert "".join(output["data"]["text/html"]).startswith("<ul")
    return "".join(output["data"]["text/plain"])


def text_of(output: dict[str, Any]) -> str:
    """Return an output of a cell as plain text."""
    return "".join(output.get("data", {}).get("text/plain", ""))
