"""Any set of runs as one table: what stands in it, and that no index is believed unseen."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pandas as pd
import pytest

import perflab
from perflab.analysis.treatments.evaluation import evaluate
from perflab.errors import ParameterError
from perflab.recordings import ManyRuns, Run, RunWriter, list_runs, many_runs, trials_kept
from perflab.recordings.signatures import TOO_NEW_NS
from tests.across.history_of_runs import OTHER, add_days, add_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days, a run on another machine, one of another experiment, one that was killed."""
    root = tmp_path_factory.mktemp("made") / "runs"
    add_days(root, 3)
    add_run(root, 4, machine=OTHER, parameters={"requests": 400, "rungs": [1, 2]})
    add_run(root, 5, experiment="sync_vs_async", run_id="other")
    add_run(root, 6, state="running", run_id="killed")
    return root


@pytest.fixture
def runs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be harmed, old enough to be kept."""
    root = tmp_path / "runs"
    shutil.copytree(made, root)
    monkeypatch.setenv("PERFLAB_RUNS", str(root))
    settle()
    return root


def settle() -> None:
    """Wait until files that were just written are old enough to be told from changed ones."""
    time.sleep(2 * TOO_NEW_NS / 1e9)


def looked(root: Path) -> ManyRuns:
    return many_runs(root, trials_kept())


def test_every_trial_of_every_run_has_a_row_with_the_run_it_is_of(runs: Path) -> None:
    table = perflab.trials_of()
    each = list_runs(runs)
    assert list(table["run"].unique()) == [run.run_id for run in each]
    for run in each:
        own, wanted = table[table["run"] == run.run_id], run.trials()
        for name in ("trial_id", "state", "throughput_rps", "mean_ms", "block", "superseded"):
            pd.testing.assert_series_equal(
                own[name].reset_index(drop=True), wanted[name], check_dtype=False
            )
    first = table.iloc[0]
    assert (first["commit"], first["backend"], first["machine"]) == (
        f"{0:040x}", "process", "synthetic, 2 cores",
    )  # fmt: skip
    assert str(first["created_at"]) == "2026-03-01 03:04:05+00:00"
    assert set(table.loc[table["run"] == "killed", "run_state"]) == {"running"}


@pytest.mark.usefixtures("runs")
def test_parameters_that_differ_are_columns_and_those_that_do_not_are_none() -> None:
    table = perflab.trials_of()
    assert set(table.loc[table["run"] == "day04-process", "parameter_rungs"]) == {"1, 2"}
    assert "parameter_requests" not in table
    assert table.loc[table["run"] == "day01-process", "parameter_seed"].iloc[0] == 1


@pytest.mark.usefixtures("runs")
def test_a_row_per_run_and_contrast_has_the_effect_that_the_run_itself_shows() -> None:
    table = perflab.effects("synchronous_commit")
    assert list(table["run"]) == [*(f"day{day:02d}-process" for day in (0, 1, 2, 4)), "killed"]
    row = table.iloc[1]
    (told,) = evaluate(perflab.open_run(row["run"]))
    assert told.effect is not None
    assert (row["effect"], row["p_value"]) == (told.effect.estimate, told.effect.p_value)
    assert row["low"] < row["effect"] < row["high"]
    assert row["n"] == 2
    assert table["machine_id"].nunique() == 2


def test_runs_are_chosen_by_experiment_reference_backend_and_day(runs: Path) -> None:
    def ids(*words: object, **options: str) -> list[str]:
        return list(perflab.trials_of(*words, **options)["run"].unique())  # type: ignore[arg-type]

    assert ids("sync_vs_async") == ["other"]
    assert ids("day01") == ["day01-process"]
    assert ids(["day01", Run(runs / "day02-process"), runs / "other"]) == [
        "day01-process", "day02-process", "other",
    ]  # fmt: skip
    assert ids(since="2026-03-06") == ["other", "killed"]
    assert ids(backend="docker") == []
    assert {"run", "trial_id", "throughput_rps"} <= set(perflab.trials_of(backend="docker"))


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            {"which": "sync_vs_asynk"},
            "no experiment or run 'sync_vs_asynk' .did you mean 'sync_vs_async'",
        ),
        ({"backend": "podman"}, "not docker or process"),
        ({"since": "yesterday"}, "write 2026-11-21"),
    ],
)
def test_what_there_is_not_is_refused(words: dict[str, str], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        perflab.trials_of(**words)


@pytest.mark.usefixtures("runs")
def test_a_run_of_another_folder_is_refused_with_the_way_out(made: Path) -> None:
    with pytest.raises(ParameterError, match="point PERFLAB_RUNS at"):
        perflab.trials_of(made / "day01-process")


def test_a_second_look_opens_no_run_and_a_changed_run_is_opened_alone(runs: Path) -> None:
    first, second = looked(runs), looked(runs)
    assert (first.opened, second.opened) == (6, 0)
    assert second.table.equals(first.table)
    RunWriter.reopen(runs / "day01-process").supersede(["b000-p00-a0"])
    settle()
    third = looked(runs)
    assert third.opened == 1
    table = third.table.to_pandas()
    gone = table[(table["folder"] == "day01-process") & table["superseded"]]
    assert list(gone["trial_id"]) == ["b000-p00-a0"]


def test_of_other_experiments_only_the_record_is_read(runs: Path) -> None:
    assert len(perflab.trials_of("sync_vs_async")["run"].unique()) == 1
    found = looked(runs)
    # Their trials had been left alone, so they are read now; the one that was wanted is not.
    assert found.opened == 5
    assert looked(runs).opened == 0


def test_a_trial_that_is_damaged_after_the_first_look_is_named_and_left_out(runs: Path) -> None:
    looked(runs)
    file = runs / "day02-process" / "trials" / "b001-p01-a0" / "requests.parquet"
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[300] ^= 0xFF
    file.write_bytes(bytes(content))
    # Length and date are as they were.
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    table = perflab.trials_of("day02-process")
    assert set(table["trial_id"]) == {"b000-p00-a0", "b000-p01-a0", "b001-p00-a0"}
    (problem,) = table.attrs["problems"]
    assert "run day02-process: trial b001-p01-a0 is damaged" in problem
    assert "requests.parquet" in problem


def test_runs_that_are_half_written_or_unreadable_are_named_and_the_others_are_there(
    runs: Path,
) -> None:
    (runs / "day00-process" / "run.json").write_text('{"schema_version": 3, "run_id"')
    (runs / "day01-process" / "run.json").unlink()
    found = looked(runs)
    assert set(found.facts) == {"day02-process", "day04-process", "other", "killed"}
    assert len(found.problems) == 2
    assert any("day00-process" in each and "damaged" in each for each in found.problems)
    assert any("day01-process" in each and "not a run" in each for each in found.problems)


@pytest.mark.parametrize("harm", [b"", b"PAR1 and nothing", None])
def test_a_damaged_index_is_made_anew(runs: Path, harm: bytes | None) -> None:
    wanted = looked(runs).table
    file = runs / ".index" / "trials.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content) if harm is None else harm)
    found = looked(runs)
    assert found.table.equals(wanted)
    assert found.problems == []
    assert looked(runs).opened == 0


def test_what_other_code_worked_out_is_worked_out_anew(runs: Path) -> None:
    looked(runs)
    kept = trials_kept()
    other = type(kept)(kept.name, kept.of, kept.columns, "other code")
    assert many_runs(runs, other).opened == 6


def test_runs_that_are_gone_are_gone_from_the_index(runs: Path) -> None:
    looked(runs)
    shutil.rmtree(runs / "day00-process")
    assert "day00-process" not in looked(runs).facts
    shutil.copytree(runs / "day01-process", runs / "day00-process")
    assert looked(runs).opened == 1


def test_a_folder_of_runs_that_cannot_be_written_is_read_all_the_same(runs: Path) -> None:
    (runs / ".index").write_text("in the way")
    assert looked(runs).opened == looked(runs).opened == 6


def _look_often(root: Path, times: int) -> None:
    for _ in range(times):
        shutil.rmtree(root / ".index", ignore_errors=True)
        assert len(looked(root).facts) == 6


@pytest.mark.slow
def test_several_processes_may_make_the_index_at_once(runs: Path) -> None:
    wanted = looked(runs).table
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_look_often, args=(runs, 4)) for _ in range(3)]
    for each in others:
        each.start()
    for each in others:
        each.join(100)
    assert [each.exitcode for each in others] == [0, 0, 0]
    assert looked(runs).table.equals(wanted)
    assert [path.name for path in (runs / ".index").iterdir()] == ["trials.parquet"]
