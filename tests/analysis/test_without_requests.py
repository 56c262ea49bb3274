"""Findings rest on trial rows: they are the same once the table of requests is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perflab.analysis.treatments.evaluation import evaluate
from perflab.recordings import Run, manifest
from perflab.recordings.columns import REQUESTS
from tests.synthetic import ON_AND_OFF, contrast_of, write_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    contrasts = [
        contrast_of(*ON_AND_OFF),
        contrast_of(*ON_AND_OFF, name="p99", response="p99_ms"),
        contrast_of(*ON_AND_OFF, name="mean", response="mean_ms"),
    ]
    return write_run(tmp_path / "whole", blocks=8, requests=60, contrasts=contrasts)


def without_requests(run: Run, root: Path) -> Run:
    """Return a copy of a run whose trials have no row of requests."""
    shutil.copytree(run.path, root)
    for trial in root.glob("trials/*"):
        pq.write_table(REQUESTS.empty_table(), trial / "requests.parquet")
        (trial / manifest.FILE).unlink()
        (trial / manifest.FILE).write_bytes(manifest.describe(trial))
    return Run(root)


def test_what_is_judged_needs_no_requests(run: Run, tmp_path: Path) -> None:
    rest = without_requests(run, tmp_path / "rest")
    assert rest.requests().empty
    assert rest.problems == []
    found, again = evaluate(run), evaluate(rest)
    assert any(each.effect is not None for each in found)
    # As text: NaN is not equal to itself.
    assert repr(again) == repr(found)
