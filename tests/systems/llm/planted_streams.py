"""A run of streams with planted chunks, failures and costs, written through the real store."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from perflab.host.placing import placement
from perflab.recordings import Run, RunWriter, trial_id
from perflab.stacks.process_backend import choose
from perflab.systems import experiment
from perflab.trials.conductor import new_record
from tests.support.synthetic import HOUR_NS

MS = 1_000_000
NUMBER, CHUNKS = 40, 5
# The first chunk's time after the planned instant, and the gaps between chunks, by version.
FIRST_MS = {"old": 60.0, "new": 50.0, "raw": 45.0}
GAP_MS = {"old": 12.0, "new": 10.0, "raw": 9.0}
USERS_HELD = {"old": 100, "new": 140, "raw": 150}
CPU_US = {"old": 4000.0, "new": 3000.0, "raw": 2500.0}


def answers(version: str = "old", failed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return requests, one every 10 ms by a user of its own, and their chunks.

    The last ``failed`` requests end with status 503 as soon as they are sent.
    """
    planned = HOUR_NS + np.arange(NUMBER, dtype=np.int64) * 10 * MS
    first, gap = round(FIRST_MS[version] * MS), round(GAP_MS[version] * MS)
    is_bad = np.arange(NUMBER) >= NUMBER - failed
    lasts = np.where(is_bad, 3 * MS, first + (CHUNKS - 1) * gap)
    requests = pd.DataFrame(
        {
            "stage": "measure",
            "worker": np.zeros(NUMBER, np.int16),
            "user": np.arange(NUMBER, dtype=np.int32),
            "planned_ns": planned,
            "started_ns": planned,
            "sent_ns": planned + 2 * MS,
            "first_byte_ns": planned + np.minimum(first, lasts),
            "done_ns": planned + lasts,
            "connect_ns": np.zeros(NUMBER, np.int64),
            "status": np.where(is_bad, 503, 200).astype(np.int16),
            "bytes": np.full(NUMBER, 100),
            "error": np.where(is_bad, "status", ""),
        }
    )
    successes = np.flatnonzero(~is_bad)
    number = np.tile(np.arange(CHUNKS + 1, dtype=np.int32), len(successes))
    request = np.repeat(successes, CHUNKS + 1)
    chunks = pd.DataFrame(
        {
            "worker": np.zeros(len(number), np.int16),
            "user": request.astype(np.int32),
            "request": request,
            "planned_ns": planned[request],
            "number": number,
            "at_ns": planned[request] + first + np.minimum(number, CHUNKS - 1) * gap,
            "bytes": np.full(len(number), 20, np.int32),
            "is_end": number == CHUNKS,
        }
    )
    return requests, chunks


# A planted run need not survive a crash of the machine.
@patch("os.fsync", new=lambda _: None)
def write_streams(
    root: Path, sets: tuple[str, ...], blocks: int = 3, scatter: float = 1.0, **parameters: Any
) -> Run:
    """Write a run in which users at the stop depend on descriptors, users held on the version.

    Each block has ``scatter`` more users at the stop than the one before.
    """
    streaming = experiment("llm_streaming")
    plan = streaming.plan(
        streaming.check({"sets": sets, "blocks": blocks, "seed": 1, **parameters})
    )
    writer = RunWriter.create(root, new_record(plan, choose("process"), placement()))
    for block in range(blocks):
        for position, treatment in enumerate(plan.treatments):
            version, files = treatment.levels["version"], treatment.levels["max_files"]
            requests, chunks = answers(version, failed=0 if files == "enough" else 5)
            unpaced = treatment.levels["pacing"] == "none"
            row = {
                "trial_id": trial_id(block, position, 0), "block": block, "position": position,
                "attempt": 0, "treatment": treatment.name, "state": "valid", "reasons": [],
                **{f"factor_{name}": level for name, level in treatment.levels.items()},
                "server_cpu_us_per_answer": CPU_US[version] * (1 + 0.01 * block),
                "server_cpu_us_per_chunk": CPU_US[version] / CHUNKS,
                "mean_ms": 100.0 + 0.1 * block,
                "throughput_rps": 60.0 if not unpaced else 1e6 / CPU_US[version],
                # Without pacing both versions use all of their core.
                "cpu_share_proxy": 1.0 if unpaced else CPU_US[version] / 1e4 * (1 + 0.01 * block),
            }  # fmt: skip
            if files != "enough":
                row |= {
                    "users_at_stop": int(files) * 0.75 + scatter * block,
                    "requests_begun": int(files) * 2.0,
                    "successes_until_stop": int(files) * 1.0,
                    "failure_share_broken_off": 0.3,
                }
            if treatment.levels["rung"].startswith("capacity_"):
                row["users_held"] = USERS_HELD[version] + float(block)
            own_chunks = chunks if treatment.levels["kind"] != "batch" else None
            writer.commit_trial(row, requests, None, chunks=own_chunks)
    writer.update(state="finished", finished_at="2026-01-02T03:14:05Z")
    return Run(writer.path)
