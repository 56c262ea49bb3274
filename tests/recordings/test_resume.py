"""A resumed run repeats no finished block, and replaces all trials of an unfinished one."""

from __future__ import annotations

import shutil

import pytest

from perflab.errors import ResumeRefused
from perflab.recordings import Run, RunWriter, remaining_blocks
from perflab.recordings.store import remainder
from tests.support.synthetic import write_run


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> Run:
    return write_run(tmp_path_factory.mktemp("runs"), blocks=4, requests=40, failed=[(3, 0)])


def ids(*names: str) -> list[str]:
    return [f"b{name[0].zfill(3)}-p{name[1].zfill(2)}-a{name[2]}" for name in names]


def test_a_complete_run_has_nothing_left_failed_trials_included(complete) -> None:
    assert remaining_blocks(complete.record, complete.path) == ([], 0, [])


def test_the_broken_block_is_done_again_whole(complete) -> None:
    left = remainder(complete.record, ids("000", "010", "100"))
    assert left == ({1: 1, 2: 0, 3: 0}, ["b001-p00-a0"])


def test_a_second_interruption_takes_a_third_attempt(complete) -> None:
    record = complete.record.model_copy(update={"superseded": ["b000-p00-a0"]})
    attempts, superseded = remainder(record, ids("000", "001"))
    assert attempts[0] == 2
    assert superseded == ["b000-p00-a1"]


def test_a_damaged_trial_leaves_its_block_to_do_and_its_id_taken(complete) -> None:
    attempts, _ = remainder(complete.record, ids("000", "010", "110"), unreadable=ids("100"))
    assert next(iter(attempts.items())) == (1, 1)


def test_what_is_on_disk_decides(tmp_path) -> None:
    run = write_run(tmp_path, blocks=3, requests=40)
    shutil.rmtree(run.path / "trials" / "b002-p01-a0")
    blocks, attempt, superseded = remaining_blocks(run.record, run.path)
    assert (blocks, attempt, superseded) == ([2], 1, ["b002-p00-a0"])
    writer = RunWriter.reopen(run.path)
    writer.supersede(superseded)
    assert len(Run(run.path).valid_trials()) == 4


def test_two_broken_blocks_are_refused_by_name(tmp_path) -> None:
    run = write_run(tmp_path, blocks=3, requests=40)
    for name in ("b000-p01-a0", "b002-p01-a0"):
        shutil.rmtree(run.path / "trials" / name)
    with pytest.raises(ResumeRefused, match="blocks 0, 2"):
        remaining_blocks(run.record, run.path)
