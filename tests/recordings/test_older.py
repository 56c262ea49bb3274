"""Recordings of older schemas are read as today's: reasons, warnings, names of tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perflab.errors import RecordingError, ResumeRefused
from perflab.recordings import SCHEMA_VERSION, Reason, Remark, Run, RunWriter, check_same
from perflab.recordings.older import UNCODED
from tests.recordings.test_reasons import committed
from tests.synthetic import profiled_run, write_run

CHAINS = {"main (run.py);f (x/y.py)": 3, "main (run.py)": 7}


def as_of_schema_1(run: Run, **columns: pa.Array) -> Run:
    """Return the run with its trial's columns as they were."""
    file = run.path / "trials" / "b000-p00-a0" / "trial.parquet"
    (file.parent / "manifest.json").unlink()  # the first had none
    table = pq.read_table(file).drop_columns(["reasons", "warnings"])
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, file)
    return Run(run.path)


def texts(*given: str) -> pa.Array:
    return pa.array([list(given)], type=pa.list_(pa.string()))


def test_reasons_of_schema_1_are_read_with_their_sides(tmp_path: Path) -> None:
    run = as_of_schema_1(
        committed(tmp_path),
        reasons=texts("lost", "late"),
        reason_sides=texts("server", "client"),
        warnings=texts("the load was ended early"),
    )
    trial = run.trials().iloc[0]
    assert trial["reasons"] == [
        Reason(code=UNCODED, side="server", text="lost"),
        Reason(code=UNCODED, side="client", text="late"),
    ]
    assert trial["warnings"] == [Remark(code=UNCODED, text="the load was ended early")]
    assert "reason_sides" not in trial


def test_a_run_from_before_sides_does_not_say_whose_faults_they_were(tmp_path: Path) -> None:
    run = as_of_schema_1(committed(tmp_path), reasons=texts("lost", "late"))
    trial = run.trials().iloc[0]
    assert [reason.side for reason in trial["reasons"]] == ["unknown", "unknown"]
    assert trial["warnings"] == []


@pytest.mark.parametrize("sides", [["server", "client"], ["nobody"]])
def test_sides_that_do_not_fit_their_reasons_are_damage(tmp_path: Path, sides: list[str]) -> None:
    run = as_of_schema_1(committed(tmp_path), reasons=texts("lost"), reason_sides=texts(*sides))
    assert run.trials().empty
    assert "b000-p00-a0 is damaged" in run.problems[0]


def test_a_run_of_schema_1_can_be_read_and_not_resumed(tmp_path: Path) -> None:
    record: Any = write_run(tmp_path, blocks=1, requests=10).record
    older = record.model_copy(update={"schema_version": 1})
    RunWriter(tmp_path / record.run_id, older).update(state="interrupted")
    again = Run(tmp_path / record.run_id).record
    assert again.schema_version == 1
    with pytest.raises(ResumeRefused, match=rf"schema version 1, now {SCHEMA_VERSION}.*new run"):
        check_same(again, record)


def rewritten(run: Run, **words: Any) -> Run:
    """Return the run with other words in its record."""
    file = run.path / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **words}))
    return Run(run.path)


@pytest.mark.parametrize("version", [1, 2])
def test_call_chains_that_were_recorded_as_stacks_are_read(tmp_path: Path, version: int) -> None:
    now = profiled_run(tmp_path, {"a": CHAINS}, blocks=2)
    seen = now.calls()
    for file in now.path.glob("trials/*/calls.parquet"):
        table = pq.read_table(file).rename_columns(["stack", "samples"])
        pq.write_table(table, file.with_name("stacks.parquet"))
        file.unlink()
        (file.parent / "manifest.json").unlink()
    declared = {"stacks": {"stack": "string", "samples": "int64"}}
    run = rewritten(now, schema_version=version, tables=declared if version == 2 else {})
    assert run.problems == []
    assert run.calls().equals(seen)
    assert len(seen) == 2 * len(CHAINS)
    assert "stacks" not in run.record.tables


def test_todays_recordings_have_no_table_of_stacks(tmp_path: Path) -> None:
    now = profiled_run(tmp_path, {"a": CHAINS}, blocks=1)
    assert {"calls.parquet"} <= {file.name for file in now.path.glob("trials/*/*")}
    with pytest.raises(RecordingError, match="no table 'stacks'"):
        now.table("stacks")


@pytest.mark.parametrize("version", [1, 2])
def test_a_warning_of_a_run_that_was_a_text_is_read_without_a_code(
    tmp_path: Path, version: int
) -> None:
    run = write_run(tmp_path, blocks=1, requests=10)
    again = rewritten(run, schema_version=version, warnings=["the disk is slow"])
    assert again.record.warnings == [Remark(code=UNCODED, text="the disk is slow")]
    RunWriter.reopen(run.path).update(state="interrupted")
    assert Run(run.path).record.warnings == again.record.warnings


@pytest.mark.parametrize("words", [{"warnings": 7}, {"warnings": [7]}, {"tables": {"stacks": 7}}])
def test_an_older_record_that_is_none_is_refused(tmp_path: Path, words: dict[str, Any]) -> None:
    run = write_run(tmp_path, blocks=1, requests=10)
    with pytest.raises(RecordingError, match="not a valid record"):
        rewritten(run, schema_version=2, **words)


def test_a_text_is_no_warning_of_a_run_today(tmp_path: Path) -> None:
    run = write_run(tmp_path, blocks=1, requests=10)
    seen = Remark(code="host.flushes", side="unknown", text="the disk is slow")
    RunWriter.reopen(run.path).update(warnings=[seen])
    assert Run(run.path).record.warnings == [seen]
    with pytest.raises(RecordingError, match="warnings"):
        rewritten(run, warnings=["the disk is slow"])
