"""Checks of every executed notebook: a finished run, its verdict and its figures."""

from __future__ import annotations

import json
from pathlib import Path

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
