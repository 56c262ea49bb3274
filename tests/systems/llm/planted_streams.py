"""Planted streams: the chunks of answers, and runs that failures end; no service, no load."""

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


def write_limits(root: Path, blocks: int, scatter: float) -> Run:
    """Write a run in which users at the stop depend on descriptors.

    Each block has ``scatter`` more users at the stop than the one before.
    """

    def plant(treatment: Treatment, block: int, _: int) -> tuple[Any, None, Any]:
        files = int(treatment.levels["max_files"])
        columns = {"users_at_stop": files * 0.75 + scatter * block, "requests_begun": files * 2.0}
        return columns, None, {"chunks": None}

    return write_planned(root, "llm_streaming", plant, sets=("limits",), blocks=blocks)
