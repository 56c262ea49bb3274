"""A reader shows what can be read, names what cannot, and chooses a run that stands for others."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from perflab.errors import RecordingError, RunNotFound
from perflab.recordings import Run, complete_blocks, list_runs, open_run, select
from perflab.recordings.schema import SCHEMA_VERSION
from tests.support.synthetic import write_run


@pytest.fixture
def run(tmp_path) -> Run:
    return write_run(tmp_path, blocks=2, requests=60, invalid=[(0, 0)], failed=[(1, 1)])


@pytest.mark.promise
def test_what_does_not_count_must_be_asked_for(run) -> None:
    valid = set(run.valid_trials()["trial_id"])
    assert len(valid) == 2
    assert set(run.requests()["trial_id"]) == set(run.table("samples")["trial_id"]) == valid


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
@pytest.mark.promise
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
    [("latest", "3"), ("latest:beta", "2"), ("20260101", "1"), ("000002", "2")],
)
def test_a_run_is_found_by_the_ends_of_its_name_or_by_age(three, reference, last) -> None:
    assert open_run(reference, three).run_id[-1] == last


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("202601", "fits 3 runs"),
        ("latest:gamma", "finished ones: alpha, beta"),
        ("", "no run"),
        ("20260102T000000Z-bete-000002", "did you mean '20260102T000000Z-beta-000002'"),
    ],
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


def written(root: Path, hour: int, **options: object) -> Run:
    """Write a run with the hour in its name, its seed and its age."""
    experiment = options.setdefault("experiment", "alpha")
    run = write_run(root, requests=40, seed=hour, run_id=f"2026010{hour}-{experiment}", **options)  # type: ignore[arg-type]
    return changed(run, created_at=f"2026-01-0{hour}T00:00:00Z")


def changed(run: Run, **words: object) -> Run:
    file = run.path / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **words}))
    return Run(run.path)


def chosen(root: Path) -> list[tuple[str, int]]:
    return [(run.run_id, complete_blocks(run)) for run in select(list_runs(root))]


def test_the_run_with_most_complete_blocks_is_taken_not_the_newest(tmp_path: Path) -> None:
    written(tmp_path, 1, blocks=3)
    written(tmp_path, 2, blocks=1)
    assert chosen(tmp_path) == [("20260101-alpha", 3)]


def test_a_block_with_a_trial_that_does_not_count_is_not_complete(tmp_path: Path) -> None:
    run = written(tmp_path, 1, blocks=3, invalid=[(0, 0)], failed=[(2, 1)])
    assert complete_blocks(run) == 1
    written(tmp_path, 2, blocks=2)
    assert chosen(tmp_path) == [("20260102-alpha", 2)]


def test_of_equals_the_newest_is_taken(tmp_path: Path) -> None:
    written(tmp_path, 1, blocks=2)
    written(tmp_path, 2, blocks=2)
    assert chosen(tmp_path) == [("20260102-alpha", 2)]


def test_runs_that_asked_something_else_do_not_supersede_each_other(tmp_path: Path) -> None:
    written(tmp_path, 1, blocks=3)
    changed(written(tmp_path, 2, blocks=1), backend="docker")
    changed(written(tmp_path, 3, blocks=1), parameters={"requests": 7, "seed": 3})
    changed(written(tmp_path, 4, blocks=1), environment={"machine": {"cpu": "another"}})
    written(tmp_path, 5, blocks=1, experiment="beta")
    assert len(chosen(tmp_path)) == 5


@pytest.mark.parametrize("state", ["running", "interrupted", "failed"])
def test_the_latest_run_is_the_latest_that_finished(tmp_path: Path, state: str) -> None:
    finished = written(tmp_path, 1, blocks=1)
    unfinished = written(tmp_path, 2, blocks=1, state=state)
    for reference in ("latest", "latest:alpha"):
        assert open_run(reference, tmp_path).run_id == finished.run_id
    assert open_run(unfinished.run_id, tmp_path).record.state == state
