"""The start page of JupyterLab shows the questions, the newest runs, and how to go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perflab
from perflab.load.report import INVALID, VALID, LoadSummary
from perflab.paths import notebooks_dir
from perflab.recordings.display import Shown
from perflab.reports.runs import NO_RUNS
from perflab.systems import experiment, names
from tests.support.synthetic import write_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PERFLAB_LOCK", str(tmp_path / "lock"))
    return tmp_path / "runs"


def test_every_experiment_is_there_with_its_question_and_a_link_that_leads_somewhere() -> None:
    shown = perflab.questions()
    page = shown._repr_html_()
    assert set(shown.table["question"]) >= {experiment(name).question for name in names()}
    addresses = re.findall(r'href="([^"]+)"', page)
    assert len(addresses) == len(names())
    assert all((notebooks_dir() / address).is_file() for address in addresses)
    table = shown.table.head(1).assign(notebook='"><script>')
    assert "<script>" not in Shown(table, table, links={'"><script>': '"><script>'})._repr_html_()


def test_without_runs_the_page_says_how_to_make_one(runs: Path) -> None:
    assert not runs.exists()
    assert NO_RUNS in perflab.latest_runs()._repr_html_()


def test_the_newest_runs_stand_first_with_what_to_type(runs: Path) -> None:
    for number, state in enumerate(("finished", "interrupted", "running", "finished")):
        write_run(runs, blocks=1, requests=40, run_id=f"2026010{number}T0Z-e-{number}", state=state)
    table = perflab.latest_runs(3).table
    assert list(table["state"]) == ["finished", "killed", "interrupted"]
    assert list(table["next"]) == [
        'from_run = "20260103T0Z-e-3"', 'resume = "20260102T0Z-e-2"', 'resume = "20260101T0Z-e-1"',
    ]  # fmt: skip


@pytest.mark.parametrize(("valid", "color"), [(True, VALID), (False, INVALID)])
def test_a_load_shows_itself_as_the_command_prints_it_and_stays_a_dict(
    valid: bool, color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflab.load.report.table", lambda shown: f"<{shown['requests']}>\nline 2")
    shown = LoadSummary(valid=valid, requests=7)
    assert shown["requests"] == 7
    page = shown._repr_html_()
    assert "&lt;7&gt;\nline 2" in page
    assert color in page
