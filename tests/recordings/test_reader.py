"""A reader shows what can be read and names what cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from perflab.errors import RecordingError, RunNotFound
from perflab.recordings import Run, open_run
from perflab.recordings.schema import SCHEMA_VERSION
from tests.support.synthetic import write_run


@pytest.fixture
def run(tmp_path) -> Run:
    return write_run(tmp_path, blocks=2, requests=60, invalid=[(0, 0)], failed=[(1, 1)])


def test_tables_carry_trial_treatment_and_block(run) -> None:
    everything = list(run.trials()["trial_id"])
    for table in (run.requests(trial_ids=everything), run.table("samples"), run.table("waits")):
        assert {"trial_id", "treatment", "block"} <= set(table.columns)
        assert len(table) > 0
    joined = run.requests(trial_ids=everything).merge(run.trials(), on="trial_id")
    assert (joined["treatment_x"] == joined["treatment_y"]).all()


def test_what_does_not_count_must_be_asked_for(run) -> None:
    valid = set(run.valid_trials()["trial_id"])
    assert len(valid) == 2
    assert set(run.requests()["trial_id"]) == set(run.table("samples")["trial_id"]) == valid


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_refused_with_the_way_out(run, version: int) -> None:
    file = run.path / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": version}))
    with pytest.raises(RecordingError, match=r"the perflab that wrote it, or measure anew"):
        Run(run.path)


@pytest.fixture
def three(tmp_path) -> Path:
    for hour, experiment in ((1, "alpha"), (2, "beta"), (3, "alpha")):
        run_id = f"2026010{hour}T000000Z-{experiment}-00000{hour}"
        write_run(tmp_path, blocks=1, requests=40, experiment=experiment, run_id=run_id)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "last"),
    [("latest", "3"), ("latest:beta", "2"), ("20260101", "1")],
)
def test_a_run_is_found_by_name_prefix_or_age(three, reference, last) -> None:
    assert open_run(reference, three).run_id[-1] == last


def test_a_misspelt_id_gets_the_nearest(three) -> None:
    with pytest.raises(RunNotFound, match=r"did you mean '20260102T000000Z-beta-000002'"):
        open_run("20260102T000000Z-bete-000002", three)


@pytest.mark.parametrize(
    ("reference", "words"),
    [("202601", "fits 3 runs"), ("latest:gamma", "finished ones: alpha, beta"), ("", "no run")],
)
def test_an_unclear_reference_names_the_choice(three, reference, words) -> None:
    with pytest.raises(RunNotFound, match=words):
        open_run(reference, three)


def test_every_row_keeps_the_trial_that_it_was_read_from(run) -> None:
    names = run.valid_trials()["trial_id"].tolist()
    joined = run.requests(trial_ids=names)
    assert joined["trial_id"].drop_duplicates().tolist() == names
    for trial in names:
        alone = run.requests(trial_ids=[trial])
        together = joined[joined["trial_id"] == trial].reset_index(drop=True)
        pd.testing.assert_frame_equal(together, alone)
