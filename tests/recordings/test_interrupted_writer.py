"""A writer that is killed, or whose disk is full, loses nothing that was committed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from perflab.errors import RecordingError
from perflab.recordings import Run, RunRecord, RunWriter, remaining_blocks, trial_id
from perflab.recordings.columns import TABLES
from tests.support.synthetic import variants, write_run

BLOCKS = 400
ROWS, KILLS, LONGEST_S = 2000, 10, 0.15
FULL = "all trials before it are committed and readable.* make room on that disk, or move the run"


def tables_of(block: int) -> tuple[pa.Table, pa.Table]:
    """Return requests and samples whose every instant is the block's number."""

    def filled(schema: pa.Schema) -> pa.Table:
        columns = [
            pa.array(["measure" if field.name == "stage" else ""] * ROWS)
            if pa.types.is_string(field.type)
            else pa.array([block if field.name.endswith("_ns") else 1] * ROWS, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)

    return filled(TABLES["requests"]), filled(TABLES["samples"])


def commit(writer: RunWriter, blocks: Iterable[int]) -> None:
    """Commit the only trial of each block."""
    only = writer.record.treatments[0].name
    for block in blocks:
        place = {"trial_id": trial_id(block, 0, 0), "block": block, "position": 0, "attempt": 0}
        writer.commit_trial({**place, "treatment": only, "state": "valid"}, *tables_of(block))


def commit_for_ever(folder: Path, first: int, notes: int) -> None:
    """Commit a trial per block, and write each block to ``notes`` after its commit."""
    writer = RunWriter.reopen(folder)
    for block in range(first, BLOCKS):
        commit(writer, [block])
        os.write(notes, f"{block}\n".encode())
        if block % 5 == 0:
            writer.update(reason=f"at block {block}")


def many_blocks(root: Path, run_id: str) -> RunRecord:
    """Return the record of a run of one treatment in many blocks."""
    model = write_run(root, treatments=variants(1), blocks=1, requests=60).record
    order = [[model.treatments[0].name]] * BLOCKS
    changes = {"run_id": run_id, "blocks": BLOCKS, "order": order, "state": "running"}
    return model.model_copy(update=changes)


def noted_until_killed(folder: Path, first: int, after_s: float) -> set[int]:
    """Let a child commit, kill it ``after_s`` after its first commit; return its noted blocks."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            commit_for_ever(folder, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as notes:
        noted = notes.readline()
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        noted += notes.read()
    return {int(line) for line in noted.splitlines()}


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_trials_only(tmp_path: Path) -> None:
    chance = random.Random(1)
    folder = RunWriter.create(tmp_path, many_blocks(tmp_path / "model", "killed")).path
    known: set[int] = set()
    kills_in_commit = 0
    for _ in range(KILLS):
        known |= noted_until_killed(folder, len(known), chance.uniform(0, LONGEST_S))
        kills_in_commit += any(folder.glob("trials/.tmp-*"))
        run = Run(folder)
        blocks = set(map(int, run.trials()["block"]))
        assert run.problems == []
        # One more block may exist, which was committed but not noted.
        assert known <= blocks
        assert len(blocks - known) <= 1
        known = blocks
        RunWriter.reopen(folder)
        assert [*folder.glob(".tmp-*"), *folder.glob("trials/.tmp-*")] == []
    assert known == set(range(len(known)))
    requests = Run(folder).requests().groupby("block")["planned_ns"]
    assert set(requests.size()) == {ROWS}
    assert (requests.max() == requests.min()).all()
    assert list(requests.max()) == sorted(known)
    # At least one kill must have met a commit.
    assert kills_in_commit >= 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", mount]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
            pytest.fail(f"a small disk cannot be mounted: {done.stderr}")
        pytest.skip("mounting a small disk needs root")
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_full_disk_keeps_the_trials_before_it_and_the_run_goes_on(
    small_disk: Path, tmp_path: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2**20))
    writer = RunWriter.create(small_disk, many_blocks(tmp_path / "model", "full"))
    with pytest.raises(RecordingError, match=FULL):
        commit(writer, range(BLOCKS))
    run = Run(writer.path)
    committed = len(run.trials())
    assert committed > 0
    assert list(run.trials()["block"]) == list(range(committed))
    assert run.problems == []
    assert run.requests().groupby("trial_id").size().tolist() == [ROWS] * committed
    assert [*writer.path.glob(".tmp-*"), *writer.path.glob("trials/.tmp-*")] == []

    ballast.unlink()
    writer = RunWriter.reopen(writer.path)
    attempts, superseded = remaining_blocks(writer.record, writer.path)
    blocks = list(attempts)
    assert (blocks[0], set(attempts.values()), superseded) == (committed, {0}, [])
    with pytest.raises(RecordingError, match=FULL):
        commit(writer, blocks)
    run = Run(writer.path)
    assert len(run.valid_trials()) > committed
    assert run.problems == []
