"""Trials are committed whole and once, and survive a failure of the next one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.errors import RecordingError
from perflab.recordings import Run, RunWriter, new_run_id, trial_id
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


def test_an_aborted_commit_is_invisible_and_removed_on_reopen(writer, model) -> None:
    commit(writer, model)
    leftover = writer.path / "trials" / ".tmp-b001-p00-a0"
    leftover.mkdir()
    (leftover / "trial.parquet").write_bytes(b"half")
    assert len(Run(writer.path).trials()) == 1
    RunWriter.reopen(writer.path)
    assert not leftover.exists()


def test_an_update_that_fails_leaves_the_old_record(writer, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordingError, match="make room"):
        writer.update(state="finished")
    assert Run(writer.path).record.state == "running"
    assert writer.record.state == "running"
    assert [path.name for path in writer.path.glob(".tmp-*")] == []
