"""A writer of trials killed at random instants: is every committed trial whole, and no other there?

A child commits trials in a loop, notes each on a pipe when the commit has returned, and now and
then rewrites the record; it is ended with SIGKILL. After every kill the run is opened as a reader
would, then reopened as a writer would:

- lost: a trial whose commit had returned is not there, or not whole;
- half: a trial is there that is not whole (problems of the run are such);
- leftovers: something temporary is still there after reopening.

One trial more than was noted may be there: its commit was done, and the note was not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from perflab.recordings import Run, RunRecord, RunWriter, TreatmentRecord, trial_id
from perflab.recordings.columns import REQUESTS, SAMPLES

ROWS = 2000
BLOCKS = 10_000
LONGEST_S = 0.15
KILLS_PER_RUN = 10


@dataclass
class Tally:
    """What was seen over all kills."""

    kills: int = 0
    amid_a_commit: int = 0
    committed: int = 0
    lost: int = 0
    half: int = 0
    leftovers: int = 0

    @property
    def is_clean(self) -> bool:
        """Return whether nothing was lost, half written or left."""
        return not (self.lost or self.half or self.leftovers)


def record(run_id: str) -> RunRecord:
    """Return the record of a run of one treatment and many blocks."""
    return RunRecord(
        run_id=run_id,
        experiment="kills",
        title="Kills of a writer",
        question="Is every committed trial whole?",
        created_at="2026-01-02T03:04:05Z",
        treatments=[TreatmentRecord(name="only", levels={})],
        blocks=BLOCKS,
        seed=0,
        order=[["only"]] * BLOCKS,
        backend="process",
        network_path="none",
    )


def tables(block: int) -> tuple[pa.Table, pa.Table]:
    """Return requests and samples whose every instant is the block's number."""

    def column(field: pa.Field) -> pa.Array:
        if pa.types.is_string(field.type):
            return pa.array(["measure" if field.name == "stage" else ""] * ROWS)
        return pa.array(np.full(ROWS, block if field.name.endswith("_ns") else 1), field.type)

    def filled(schema: pa.Schema) -> pa.Table:
        return pa.table([column(field) for field in schema], schema=schema)

    return filled(REQUESTS), filled(SAMPLES)


def commit_for_ever(folder: Path, first: int, notes: int) -> None:
    """Commit one trial after the other from block ``first`` on, and note each."""
    writer = RunWriter.reopen(folder)
    for block in range(first, BLOCKS):
        row = {
            "trial_id": trial_id(block, 0, 0),
            "block": block,
            "position": 0,
            "attempt": 0,
            "treatment": "only",
            "state": "valid",
        }
        writer.commit_trial(row, *tables(block))
        os.write(notes, f"{block}\n".encode())
        if block % 5 == 0:
            writer.update(reason=f"at block {block}")


def kill_one(folder: Path, first: int, after_s: float) -> list[int]:
    """Let a child commit, kill it after its first commit and ``after_s``; return what it noted."""
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
    return [int(line) for line in noted.splitlines()]


def look(folder: Path, noted: set[int], tally: Tally) -> int:
    """Open the run as it was left, count what is wrong, and return the next free block."""
    tally.amid_a_commit += any(folder.glob("trials/.tmp-*"))
    run = Run(folder)
    found = {int(block) for block in run.trials()["block"]}
    last = sorted(noted)[-20:]
    requests = run.requests(trial_ids=[trial_id(block, 0, 0) for block in last if block in found])
    whole = requests.groupby("block").agg(rows=("planned_ns", "size"), is_own=("planned_ns", "max"))
    tally.half += len(run.problems)
    tally.half += int((whole["rows"] != ROWS).sum() + (whole["is_own"] != whole.index).sum())
    tally.half += max(0, len(found - noted) - 1)
    tally.lost += len(noted - found)
    noted |= found
    RunWriter.reopen(folder)
    tally.leftovers += len([*folder.glob(".tmp-*"), *folder.glob("trials/.tmp-*")])
    return max(found) + 1


def play(folder: Path, kills: int, seed: int) -> Tally:
    """Kill a writer ``kills`` times, ten times per run, and return what was seen."""
    chance = random.Random(seed)
    tally = Tally()
    for begun in range(0, kills, KILLS_PER_RUN):
        run = RunWriter.create(folder, record(f"killed{begun}")).path
        noted, first = set[int](), 0
        for _ in range(min(KILLS_PER_RUN, kills - begun)):
            noted.update(kill_one(run, first, chance.uniform(0, LONGEST_S)))
            tally.kills += 1
            first = look(run, noted, tally)
        tally.committed += len(noted)
    return tally


def main() -> None:
    """Play and print; the exit status is 1 when anything was lost, half or left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        tally = play(Path(folder), given.kills, given.seed)
    print("kills  amid a commit  trials committed  lost  half  leftovers")
    print(
        f"{tally.kills:5}  {tally.amid_a_commit:13}  {tally.committed:16}  {tally.lost:4}  "
        f"{tally.half:4}  {tally.leftovers:9}"
    )
    sys.exit(not tally.is_clean)


if __name__ == "__main__":
    main()
