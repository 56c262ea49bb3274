"""Verdicts rest on the rows of trials: without those of requests they are the same."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from perflab.analysis.evaluation import evaluate
from perflab.figures.view import draw_view, reread
from perflab.paths import project_root
from perflab.reports.figures import views_of
from perflab.reports.section import write_section
from tests.golden.outputs import as_csv, findings_of
from tests.golden.recordings import write_recording

without_rows = runpy.run_path(str(project_root() / "scripts" / "reference.py"))["without_rows"]
LACKS = "recording lacks the rows of"
NAMES = (
    "synchronous_commit", "latency_cpu", "chat_ladder", "llm_streaming", "registry_downloads",
    "custom_service", "lab_check",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_is_judged_needs_no_requests_and_a_figure_that_does_says_so(
    name: str, tmp_path: Path
) -> None:
    run = write_recording(tmp_path / "whole", f"{name}/claimed")
    rest = without_rows(run, tmp_path / "rest")
    assert rest.missing
    assert (run.missing, rest.problems) == ([], [])
    assert findings_of(rest) == findings_of(run)
    for view in views_of(run):
        whole, table = (reread(view.shown(each)) for each in (run, rest))
        assert table.empty or as_csv(table) == as_csv(whole), view.name
        if table.empty and len(whole):
            words = [text.get_text() for axes in draw_view(view, rest).axes for text in axes.texts]
            assert LACKS in " ".join(words).replace("\n", " "), view.name
    section = write_section(rest, evaluate(rest), tmp_path / "rest", []).read_text()
    assert LACKS in section
