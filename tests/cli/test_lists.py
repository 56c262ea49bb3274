"""``perflab runs``, ``experiments``, ``claims`` and ``show latest`` as their users type them."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from perflab.analysis.evaluation import evaluate
from perflab.cli.experiments import command, parameters_of
from perflab.recordings import Reason, RunWriter
from perflab.reports.duels import variant_sentences
from perflab.reports.section import write_section
from perflab.systems import experiment, names
from tests.cli.conftest import Tell
from tests.golden.recordings import write_recording
from tests.support.synthetic import write_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_run(root, blocks=2, requests=40, run_id="20260101-first", invalid=[(0, 1)])
    write_run(root, blocks=1, requests=40, run_id="20260102-other", experiment="sync_vs_async")
    write_run(root, blocks=1, requests=40, run_id="20260103-broken", state="interrupted")
    return root


def test_the_version_is_told(perflab: Tell, runs: Path) -> None:
    assert perflab(runs, "--version")[0].strip() == f"perflab {metadata.version('perflab')}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["first", "other", "broken"]),
        (["--experiment", "sync_vs_async"], ["other"]),
        (["--limit", "1"], ["broken"]),
    ],
)
def test_runs_are_filtered(
    perflab: Tell, runs: Path, words: list[str], expected: list[str]
) -> None:
    shown = json.loads(perflab(runs, "runs", *words, "--json")[0])
    assert [run["run"].partition("-")[2] for run in shown] == expected


def test_json_has_parameters_blocks_valid_trials_and_the_path(perflab: Tell, runs: Path) -> None:
    run = json.loads(perflab(runs, "runs", "--json")[0])[0]
    assert run["parameters"]["requests"] == 400
    assert (run["blocks"], run["complete_blocks"]) == (2, 1)
    assert run["trials"] == {"valid": 3, "invalid": 1, "failed": 0}
    assert Path(run["path"]) == runs / "20260101-first"


def test_the_latest_run_that_finished_is_shown_and_others_by_name(
    perflab: Tell, runs: Path
) -> None:
    assert "20260102-other: finished" in perflab(runs, "show", "latest")[0]
    assert "interrupted" in perflab(runs, "show", "20260103-broken")[0]


def test_show_tells_reasons_whole_and_a_run_that_cannot_be_read_hides_no_other(
    perflab: Tell, tmp_path: Path
) -> None:
    reason = "the client was late " * 30
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.json").write_text("{")
    run = write_run(tmp_path, blocks=1, requests=40)
    row = {**run.trials().iloc[0].drop("superseded").to_dict()}
    told = [Reason(code="generator.late", side="client", text=reason)]
    row |= {"trial_id": "b000-p00-a1", "attempt": 1, "state": "failed", "reasons": told}
    RunWriter.reopen(run.path).commit_trial(row, None, None)
    for words in ((), ("--full",)):
        output = perflab(tmp_path, "show", run.run_id, *words)[0]
        assert " ".join(reason.split()) in " ".join(output.split())
        assert max(map(len, output.splitlines())) <= 80
    output, errors = perflab(tmp_path, "runs")
    assert run.run_id in output
    assert "torn/run.json" in errors


@pytest.mark.parametrize("name", names())
def test_every_parameter_is_listed_with_default_choices_and_meaning(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = {item["name"]: item for item in parameters_of(experiment(name).parameters)}
    command(name)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    fields = experiment(name).parameters.model_fields
    assert list(listed) == list(fields)
    for parameter in fields:
        assert parameter in text
        assert listed[parameter]["meaning"]
        assert listed[parameter]["allowed"] != "anything"


def test_choices_and_ranges_are_told_in_words() -> None:
    listed = {
        item["name"]: item["allowed"]
        for item in parameters_of(experiment("sync_vs_async").parameters)
    }
    assert listed["backend"] == "auto, docker, process"
    assert listed["blocks"] == "whole number, from 1 to 1,000 or until_decided"
    assert listed["pool_minconn"] == "list: max, 1"
    assert listed["round_trip_ms"] == "list: number, from 0 to 1,000"
    assert listed["seed"] == "whole number, from 0 or none"


def test_a_duel_is_listed_with_the_first_line_of_its_answer_once_its_section_is_saved(
    perflab: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_FIGURES", str(tmp_path / "figures"))
    run = write_recording(tmp_path / "runs", "custom_service/claimed")
    findings = evaluate(run)
    assert "slower" not in perflab(tmp_path / "runs", "runs", COLUMNS="400")[0]
    write_section(run, findings, tmp_path / "figures" / run.run_id, [])
    first = variant_sentences(run, findings)[0]
    assert "slower" in first
    assert first in perflab(tmp_path / "runs", "runs", COLUMNS="400")[0]
    assert json.loads(perflab(tmp_path / "runs", "runs", "--json")[0])[0]["answer"] == first


def test_a_run_and_the_ledger_begin_with_the_answer_and_end_with_where_the_rest_is(
    perflab: Tell, tmp_path: Path
) -> None:
    run = write_run(tmp_path, blocks=6, requests=40)
    shown = perflab(tmp_path, "show", run.run_id)[0].splitlines()
    assert any("as published: +" in line for line in shown[:8])
    assert shown[-1].endswith(f"perflab show {run.run_id} --full")
    assert not any("b000-p00-a0" in line for line in shown)
    RunWriter.reopen(run.path).supersede(["b000-p00-a0"])
    full = perflab(tmp_path, "show", run.run_id, "--full", COLUMNS="400")[0].splitlines()
    states = {line.split()[0]: line for line in full if line.startswith("b00")}
    assert "superseded" in states["b000-p00-a0"]
    assert "superseded" not in states["b000-p01-a0"]
    counted = perflab(tmp_path, "claims")[0].splitlines()
    assert len(counted) <= 40
    assert "chat" in counted[1]
    assert any(line.startswith("Not measured, ") and ": perflab run" in line for line in counted)
    assert counted[-1].endswith("perflab claims --study NAME, or --outcome judged")


def test_every_row_and_the_counts_fit_eighty_columns(perflab: Tell, tmp_path: Path) -> None:
    output, errors = perflab(tmp_path, "claims", "--study", "inference")
    assert errors == ""
    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b" not in output
    assert "perflab run sync_vs_async" in output
    assert "published rows. Verdicts are on " in output
    assert output == "".join(f"{line.rstrip()}\n" for line in output.splitlines())
