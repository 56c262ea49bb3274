"""A run of streams with planted chunks, failures and costs, written through the real store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.trials.plan import Treatment
from tests.support.synthetic import HOUR_NS
from tests.systems.planned import requests_of, write_planned

MS = 1_000_000
NUMBER, CHUNKS = 40, 5
# The first chunk's time after the planned instant, and the gaps between chunks, by version.
FIRST_MS = {"old": 60.0, "new": 50.0, "raw": 45.0}
GAP_MS = {"old": 12.0, "new": 10.0, "raw": 9.0}
CPU_US = {"old": 4000.0, "new": 3000.0, "raw": 2500.0}


def answers(version: str = "old", failed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return requests, one every 10 ms by a user of its own, and their chunks.

    The last ``failed`` requests end with status 503 as soon as they are sent.
    """
    planned = HOUR_NS + np.arange(NUMBER, dtype=np.int64) * 10 * MS
    first, gap = round(FIRST_MS[version] * MS), round(GAP_MS[version] * MS)
    is_bad = np.arange(NUMBER) >= NUMBER - failed
    lasts = np.where(is_bad, 3 * MS, first + (CHUNKS - 1) * gap)
    requests = requests_of(
        planned, planned + lasts, sent_ns=planned + 2 * MS,
        first_byte_ns=planned + np.minimum(first, lasts),
        status=np.where(is_bad, 503, 200).astype(np.int16), error=np.where(is_bad, "status", ""),
    )  # fmt: skip
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


def write_streams(
    root: Path, sets: tuple[str, ...], blocks: int = 3, scatter: float = 1.0, **parameters: Any
) -> Run:
    """Write a run in which users at the stop depend on descriptors.

    Each block has ``scatter`` more users at the stop than the one before.
    """

    def plant(treatment: Treatment, block: int, _: int) -> tuple[Any, pd.DataFrame, Any]:
        version, files = treatment.levels["version"], treatment.levels["max_files"]
        requests, chunks = answers(version, failed=0 if files == "enough" else 5)
        unpaced = treatment.levels["pacing"] == "none"
        cost_us = CPU_US[version] * (1 + 0.01 * block)
        columns = {
            "server_cpu_us_per_answer": cost_us,
            "server_cpu_us_per_chunk": CPU_US[version] / CHUNKS,
            "mean_ms": 100.0 + 0.1 * block,
            "throughput_rps": 60.0 if not unpaced else 1e6 / CPU_US[version],
            # Without pacing both versions use all of their core.
            "cpu_share_proxy": 1.0 if unpaced else cost_us / 1e4,
        }
        if files != "enough":
            columns |= {
                "users_at_stop": int(files) * 0.75 + scatter * block,
                "requests_begun": int(files) * 2.0,
                "successes_until_stop": int(files) * 1.0,
                "failure_share_broken_off": 0.3,
            }
        is_batch = treatment.levels["kind"] == "batch"
        return columns, requests, {"chunks": None if is_batch else chunks}

    return write_planned(root, "llm_streaming", plant, sets=sets, blocks=blocks, **parameters)
