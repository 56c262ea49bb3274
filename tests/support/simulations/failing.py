"""Closed loops of which some requests fail, at once or late, as trials with all their columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Load
from perflab.instruments.requests import request_columns, throughput_ends
from perflab.load.clients.outcome import CODES
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, Request, Workload
from tests.load.planted import BEGIN_NS, load_result

USERS, REQUESTS, TIMEOUT_S = 4, 3_000, 1.0
WORK = Workload(
    request=Request(), arrivals=ClosedLoop(users=USERS, requests=REQUESTS), timeout_s=TIMEOUT_S
)


def closed_loop(
    folder: Path, random: np.random.Generator, share: float, failure_ms: float, usual_ms: float
) -> LoadResult:
    """Return the load of users who wait for nothing but answers; failures take ``failure_ms``."""
    each = REQUESTS // USERS
    took_ms = usual_ms * np.exp(0.05 * random.standard_normal((USERS, each)))
    has_failed = random.permuted(np.arange(REQUESTS) < round(share * REQUESTS)).reshape(USERS, each)
    took_ms[has_failed] = failure_ms
    done_ns = BEGIN_NS + (took_ms.cumsum(axis=1) * 1e6).astype(np.int64).ravel()
    took_ns = (took_ms.ravel() * 1e6).astype(np.int64)

    def change(rows: np.ndarray) -> None:
        rows["done_ns"] = rows["first_byte_ns"] = done_ns
        for name in ("planned_ns", "started_ns", "sent_ns"):
            rows[name] = done_ns - took_ns
        rows["error"] = np.where(has_failed.ravel(), CODES["status"], 0)

    return load_result(folder, np.zeros(REQUESTS), change=change, timeout_s=TIMEOUT_S)


def columns_of(result: LoadResult, pacing_s: float = 0.0) -> dict[str, float]:
    """Return the columns of a trial's requests."""
    columns = request_columns(result)
    arrivals = WORK.arrivals.model_copy(update={"pacing_s": pacing_s})
    load = Load(WORK.model_copy(update={"arrivals": arrivals}), result, pd.DataFrame(), ())
    errors = result.measured(lambda rows: rows["error"])
    counts = {"requests": len(errors), "errors": int((errors != 0).sum())}
    return {**columns, **throughput_ends(columns, load), **counts}
