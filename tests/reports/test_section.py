"""A run as a section of a design document: complete, linked relatively, honest about failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.findings import bottlenecks, readable_summary
from perflab.reports.pictures import views_of
from perflab.reports.section import section_text, write_section
from tests.synthetic import ON_AND_OFF, write_run
from tests.systems.chat.synthetic_streams import write_stream_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    root = tmp_path_factory.mktemp("runs")
    found = write_run(root, failed={(2, 0)}, invalid={(4, 1)})
    changed = Remark(code="host.flushes", text="the disk's flush cost changed | by 4x")
    RunWriter.reopen(found.path).update(warnings=[changed])
    return Run(found.path)


@pytest.fixture(scope="module")
def written(run, tmp_path_factory) -> Path:
    """The run's section in a folder that is not its own."""
    return write_section(run, tmp_path_factory.mktemp("sections") / "report")


def test_a_section_holds_question_verdict_tables_set_up_and_warnings(run) -> None:
    text = section_text(run, [])
    for part in (
        run.record.title, run.record.question, "## Verdict", "## Findings", "## Measured",
        "## Set-up", run.run_id, "process", "loopback", run.record.placement["shared"],
        "`concurrency`", "## Warnings\n\n- the disk's flush cost changed",
    ):  # fmt: skip
        assert part in text


def test_failed_and_invalid_trials_stand_with_their_reasons(run) -> None:
    text = section_text(run, [])
    assert re.search(r"\| failed \| service 'postgres': died \(planted\) \|", text)
    assert re.search(r"\| invalid \| the client used 97% of its cores \|", text)


def test_every_linked_figure_exists_relative_to_the_section(written) -> None:
    links = re.findall(r"!\[.*?\]\(<(.*?)>\)", written.read_text())
    assert len(links) == 9
    for link in links:
        assert not Path(link).is_absolute()
        assert link.endswith(".svg")
        assert (written.parent / link).is_file()


def test_in_the_runs_own_folder_the_figures_lie_beside_the_section(run, tmp_path) -> None:
    path = write_section(run, tmp_path / run.run_id)
    assert {found.suffix for found in path.parent.iterdir()} == {".md", ".svg", ".png", ".csv"}


def test_a_section_is_the_same_when_written_again(run, written, tmp_path) -> None:
    assert written.read_bytes() == write_section(run, tmp_path / "b").read_bytes()


def test_a_png_is_linked_only_where_there_is_no_svg(run) -> None:
    text = section_text(run, ["f/a.png", "f/a.svg", "f/b.png", "f/b.csv"])
    assert "<f/a.svg>" in text
    assert "<f/b.png>" in text
    assert "a.png" not in text
    assert "csv" not in text


def test_a_run_whose_every_trial_failed_still_makes_a_section(tmp_path) -> None:
    every = {(block, index) for block in range(2) for index in range(2)}
    failed = write_run(tmp_path / "runs", blocks=2, failed=every, state="failed")
    text = write_section(failed, tmp_path / "report").read_text()
    assert "This run is failed (planted by a test)" in text
    assert text.count("| failed | service 'postgres': died (planted) |") == 4, "each trial says it"
    assert "nan" not in text.lower()


def test_a_single_trial_without_claims_still_makes_a_section(tmp_path) -> None:
    single = write_run(tmp_path / "runs", treatments=ON_AND_OFF[:1], blocks=1)
    assert "No claim is attached" in section_text(single, [])
    assert "Every trial is valid." in section_text(single, [])


def test_figures_are_called_as_their_views_are(run) -> None:
    text = section_text(run, ["f/throughput.svg", "f/from_elsewhere.svg"])
    titles = {view.name: view.title for view in views_of(run)}
    assert f"![{titles['throughput'].capitalize()}](<f/throughput.svg>)" in text
    assert "![from_elsewhere](<f/from_elsewhere.svg>)" in text


def test_logins_are_not_taken_for_the_work_of_a_run_of_streams(run, tmp_path) -> None:
    streams = write_stream_run(tmp_path)
    logins = run.requests().assign(treatment=streams.record.treatments[0].name)
    streams.requests = lambda *_, **__: logins
    assert bottlenecks(streams) == []
    assert "This run does not measure requests" in section_text(streams, [])
    assert bottlenecks(run)
    assert "logins only" not in section_text(run, [])


def test_the_cpu_of_a_service_stands_with_its_interval(run, tmp_path) -> None:
    shown = readable_summary(run)
    assert shown["CPU inference"].str.fullmatch(r"0\.\d+ \[0\.\d+, 0\.\d+\]").all()
    single = write_run(tmp_path, treatments=ON_AND_OFF[:1], blocks=1)
    assert readable_summary(single)["CPU inference"].str.endswith("(no interval)").all()
