"""A writer that is killed, or whose disk is full, loses nothing that was committed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.errors import RecordingError
from perflab.paths import project_root
from perflab.recordings import Run, RunWriter, remaining_blocks, trial_id
from tests.synthetic import variants, write_run

KILLS = os.environ.get("PERFLAB_KILLS", "20")
BLOCKS = 400
FULL = "all trials before it are committed and readable.* make room on that disk, or point PERF"


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_trials_only() -> None:
    done = subprocess.run(
        [sys.executable, project_root() / "benchmarks" / "kills_of_a_writer.py", "--kills", KILLS],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kills, amid, committed, *wrong = (int(word) for word in done.stdout.splitlines()[1].split())
    assert kills == int(KILLS)
    assert amid >= kills / 10
    assert committed >= kills
    assert wrong == [0, 0, 0]


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


def commit_all(writer: RunWriter, model: Run, blocks: list[int], attempt: int) -> None:
    """Commit one trial a block."""
    tables = [model.requests(None), model.samples(), model.waits()]
    tables = [table.drop(columns=["trial_id", "treatment", "block"]) for table in tables]
    row = model.trials().iloc[0].drop("superseded").to_dict()
    for block in blocks:
        name = trial_id(block, 0, attempt if block == blocks[0] else 0)
        identity = {"trial_id": name, "block": block, "attempt": int(name.rpartition("a")[2])}
        writer.commit_trial({**row, **identity}, *tables[:2], waits=tables[2])


def test_a_full_disk_keeps_the_trials_before_it_and_the_run_goes_on(
    small_disk: Path, tmp_path: Path
) -> None:
    model = write_run(tmp_path / "model", treatments=variants(1), blocks=1, requests=60)
    name = model.record.treatments[0].name
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2**20))
    changes = {"run_id": "full", "blocks": BLOCKS, "order": [[name]] * BLOCKS, "state": "running"}
    record = model.record.model_copy(update=changes)
    writer = RunWriter.create(small_disk, record)
    with pytest.raises(RecordingError, match=FULL):
        commit_all(writer, model, list(range(BLOCKS)), 0)
    run = Run(writer.path)
    committed = len(run.trials())
    assert committed > 0
    assert list(run.trials()["block"]) == list(range(committed))
    assert run.problems == []
    assert run.requests().groupby("trial_id").size().tolist() == [60] * committed
    assert [*writer.path.glob(".tmp-*"), *writer.path.glob("trials/.tmp-*")] == []

    ballast.unlink()
    writer = RunWriter.reopen(writer.path)
    blocks, attempt, superseded = remaining_blocks(writer.record, writer.path)
    assert (blocks[0], attempt, superseded) == (committed, 0, [])
    with pytest.raises(RecordingError, match=FULL):
        commit_all(writer, model, blocks, attempt)
    run = Run(writer.path)
    assert len(run.valid_trials()) > committed
    assert run.problems == []


def test_a_record_that_does_not_fit_on_the_disk_leaves_the_one_before(
    small_disk: Path, tmp_path: Path
) -> None:
    model = write_run(tmp_path / "model", treatments=variants(1), blocks=1, requests=60)
    writer = RunWriter.create(small_disk, model.record)
    (small_disk / "ballast").write_bytes(bytes(2**20))
    with pytest.raises(RecordingError, match=r"run\.json: cannot be written .* make room"):
        writer.update(state="finished", reason="x" * 2**20)
    assert Run(writer.path).record == model.record
    assert [path.name for path in writer.path.iterdir() if path.name.startswith(".tmp")] == []
