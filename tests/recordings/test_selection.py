"""The run with the most blocks stands for its question; the latest run is a finished one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.recordings import Run, complete_blocks, list_runs, open_run, select
from tests.support.synthetic import write_run


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
    return [(choice.run.run_id, choice.complete_blocks) for choice in select(list_runs(root))]


def test_the_run_with_most_complete_blocks_is_taken_not_the_newest(tmp_path: Path) -> None:
    written(tmp_path, 1, blocks=3)
    written(tmp_path, 2, blocks=1)
    assert chosen(tmp_path) == [("20260101-alpha", 3)]
    (selected,) = select(list_runs(tmp_path))
    assert selected.others == "20260102-alpha"


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


def test_runs_that_did_not_finish_are_not_judged(tmp_path: Path) -> None:
    written(tmp_path, 1, blocks=1)
    written(tmp_path, 2, blocks=3, state="interrupted")
    assert chosen(tmp_path) == [("20260101-alpha", 1)]


@pytest.mark.parametrize("state", ["running", "interrupted", "failed"])
def test_the_latest_run_is_the_latest_that_finished(tmp_path: Path, state: str) -> None:
    finished = written(tmp_path, 1, blocks=1)
    unfinished = written(tmp_path, 2, blocks=1, state=state)
    for reference in ("latest", "latest:alpha"):
        assert open_run(reference, tmp_path).run_id == finished.run_id
    assert open_run(unfinished.run_id, tmp_path).record.state == state
