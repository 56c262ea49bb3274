"""Trials are committed whole and once, with reasons, and survive a failure of the next one."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.errors import RecordingError
from perflab.recordings import Reason, Run, RunWriter, fault, new_run_id, trial_id
from tests.support.synthetic import write_run

FIRST = ["b000-p00-a0"]
IDENTITY = ["trial_id", "treatment", "block"]


@pytest.fixture
def model(tmp_path) -> Run:
    """A complete run of one block, whose tables the tests use."""
    return write_run(tmp_path / "model", blocks=1, requests=60)


@pytest.fixture
def writer(model, tmp_path) -> RunWriter:
    record = model.record.model_copy(update={"run_id": new_run_id("again"), "state": "running"})
    return RunWriter.create(tmp_path / "runs", record)


def row_of(model: Run, **changes) -> dict:
    row = model.trials().iloc[0].drop("superseded").to_dict()
    return {**row, **changes}


def commit(writer: RunWriter, model: Run, block: int = 0, requests=None) -> Path:
    tables = (
        model.requests(None, FIRST),
        model.table("samples", FIRST),
        model.table("waits", FIRST),
    )
    whole, samples, waits = (table.drop(columns=IDENTITY) for table in tables)
    row = row_of(model, block=block, position=0, trial_id=trial_id(block, 0, 0))
    return writer.commit_trial(row, whole if requests is None else requests, samples, waits=waits)


def test_what_was_committed_is_read_back_unchanged(writer, model) -> None:
    commit(writer, model)
    again = Run(writer.path)
    assert again.trials().loc[0, "throughput_rps"] == model.trials().loc[0, "throughput_rps"]
    written = model.requests(None, FIRST).drop(columns=IDENTITY)
    read = again.requests(None, FIRST).drop(columns=IDENTITY)
    pd.testing.assert_frame_equal(read, written)
    assert read["phase_commit_ms"].dtype == np.float32
    assert read["worker"].dtype == np.int16


def test_a_table_without_a_column_is_refused_by_name(writer, model) -> None:
    short = model.requests(stage=None).drop(columns=["done_ns"])
    with pytest.raises(RecordingError, match="requests table lacks done_ns"):
        commit(writer, model, requests=short)
    assert len(Run(writer.path).trials()) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trial_id": "b000-p00-a7"}, "should be"),
        ({"state": "good"}, "none of"),
        ({"treatment": "nobody"}, "not in the run"),
        ({"throughput_rps": "fast"}, "throughput_rps"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(writer, model, changes, words) -> None:
    with pytest.raises(RecordingError, match=words):
        writer.commit_trial(row_of(model, **changes), None, None)


def test_an_update_that_fails_leaves_the_old_record(writer, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordingError, match=r"make room.*move the run to another disk"):
        writer.update(state="finished")
    assert Run(writer.path).record.state == "running"
    assert writer.record.state == "running"
    assert [path.name for path in writer.path.glob(".tmp-*")] == []


LATE = Reason(code="generator.late", side="client", text="was late")
SLEPT = Reason(code="host.clock_step", text="slept")
FAILED = Reason(code="server.failures", side="server", text="failed")
LOST = Reason(code="chat.lost", side="server", text="lost")


@pytest.mark.parametrize(
    ("reasons", "whose"),
    [
        ([LOST, LOST], "server"),
        ([LOST, LATE], "client"),
        ([LOST, SLEPT], "unknown"),
        ([SLEPT, LATE], "client"),
        ([], "unknown"),
    ],
)
def test_the_server_is_blamed_only_where_nothing_else_can_be(
    reasons: list[Reason], whose: str
) -> None:
    assert fault(reasons) == whose


def committed(root: Path, *rows: dict[str, object]) -> Run:
    model = write_run(root / "model", blocks=1, requests=10)
    writer = RunWriter.create(root, model.record)
    treatment = model.record.treatments[0].name
    for position, row in enumerate(rows):
        identity = {"trial_id": trial_id(0, position, 0), "block": 0, "position": position}
        values = {**identity, "attempt": 0, "treatment": treatment, "state": "invalid", **row}
        writer.commit_trial(values, None, None)
    return Run(writer.path)


@pytest.mark.promise
def test_a_whole_number_that_is_unknown_in_another_trial_costs_neither_trial(
    tmp_path: Path,
) -> None:
    run = committed(tmp_path, {"x_bytes": 5}, {"x_bytes": math.nan})
    assert run.problems == []
    assert run.trials()["x_bytes"].tolist() == pytest.approx([5, math.nan], nan_ok=True)


@pytest.mark.parametrize(
    ("reasons", "response", "enters"),
    [
        ([LATE], "service_cpu_us_per_request", True),
        ([LATE], "memory_service_bytes", True),
        ([LATE], "phase_database_p50_ms", True),
        ([LATE], "client_cpu_us_per_request", False),
        ([LATE], "mean_ms", False),
        ([LATE, SLEPT], "service_cpu_us_per_request", False),
        ([], "service_cpu_us_per_request", False),
        ([LATE], "of_cpu_mean_ms", False),
        ([FAILED], "failure_share", True),
        ([FAILED, LATE], "failure_share", False),
    ],
)
@pytest.mark.promise
def test_a_late_client_takes_nothing_from_what_the_service_counts(
    tmp_path: Path, reasons: list[Reason], response: str, enters: bool
) -> None:
    run = committed(tmp_path, {"reasons": reasons})
    assert len(run.trials_of(response)) == enters


def test_a_text_is_no_reason(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="reasons must be models with code, side and text"):
        committed(tmp_path, {"reasons": ["lost"]})
