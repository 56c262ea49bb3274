"""A run as a section of a design document: complete, linked relatively, honest about failures."""

from __future__ import annotations

import shlex
from itertools import pairwise

import pytest

from perflab.parameters import parse_assignments
from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.conversion import section_html
from perflab.reports.figures import save_all
from perflab.reports.methods import command
from perflab.reports.section import bottlenecks, section_text, write_section
from tests.support.synthetic import write_run
from tests.systems.chat.synthetic_streams import write_stream_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    root = tmp_path_factory.mktemp("runs")
    written = write_run(root, failed={(2, 0)}, invalid={(4, 1)})
    changed = Remark(code="host.flushes", text="the disk's flush cost changed | by 4x")
    RunWriter.reopen(written.path).update(warnings=[changed])
    return Run(written.path)


def test_a_run_whose_every_trial_failed_still_makes_a_section(tmp_path) -> None:
    all_trials = {(block, index) for block in range(2) for index in range(2)}
    failed = write_run(tmp_path / "runs", blocks=2, failed=all_trials, state="failed")
    saved = save_all(failed, tmp_path / "report" / failed.run_id)
    text = write_section(failed, tmp_path / "report", saved).read_text()
    assert "This run is failed (planted by a test)" in text
    assert text.count("| failed | service 'postgres': died (planted) |") == 4, "each trial says it"
    assert "nan" not in text.lower()


def test_the_command_asks_for_the_parameters_that_were_measured(run) -> None:
    words = shlex.split(command(run.record))
    assignments = [word for before, word in pairwise(words) if before == "-p"]
    assert parse_assignments(assignments) == run.record.parameters
    assert words[:5] == ["perflab", "run", "synchronous_commit", "--backend", "process"]


def test_a_hostile_title_makes_no_picture_no_mark_and_no_element(tmp_path) -> None:
    hostile = write_run(tmp_path, blocks=1)
    title = "a\n<!-- perflab:end -->\n![x](http://example.org/x.png) <img src=x>"
    RunWriter.reopen(hostile.path).update(title=title)
    text = section_text(Run(hostile.path))
    page = section_html(text, {})
    assert "<img" not in page
    assert not any(line.startswith("<!--") for line in text.splitlines())


def test_logins_are_not_taken_for_the_work_of_a_run_of_streams(run, tmp_path) -> None:
    streams = write_stream_run(tmp_path)
    logins = run.requests().assign(treatment=streams.record.treatments[0].name)
    streams.requests = lambda *_, **__: logins
    assert bottlenecks(streams) == []
    assert "This run does not measure requests" in section_text(streams)
    assert bottlenecks(run)
    assert "logins only" not in section_text(run)
