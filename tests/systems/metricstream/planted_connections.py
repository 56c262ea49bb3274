"""A run of posts with planted parts of a request, written through the real store: no service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.systems.metricstream.connection_cost import part_columns
from perflab.trials.plan import Treatment
from tests.support.synthetic import HOUR_NS
from tests.systems.planned import requests_of, write_planned

US = 1_000
# Connect, send, wait, receive and close of every planted request, in us.
PLANTED_US = (40, 10, 30, 15, 5)
NUMBER = 50
Planted = Callable[[str, int], Mapping[str, object]]


def posts(connected: bool = True) -> pd.DataFrame:
    """Return the requests of a trial; on reused connections nothing is connected or closed."""
    connect, send, wait, receive, close = (part_us * US for part_us in PLANTED_US)
    connect, close = (connect, close) if connected else (0, 0)
    started = HOUR_NS + np.arange(NUMBER, dtype=np.int64) * 1_000_000
    sent = started + connect + send
    return requests_of(
        started, sent + wait + receive, sent_ns=sent, first_byte_ns=sent + wait,
        connect_ns=np.full(NUMBER, connect), close_ns=np.full(NUMBER, close),
        status=np.full(NUMBER, 202, np.int16), bytes=np.full(NUMBER, 15),
    )  # fmt: skip


def write_posts(
    root: Path,
    sets: tuple[str, ...],
    blocks: int = 2,
    planted: Planted = lambda *_: {},
    cores: int = 2,
    **parameters: object,
) -> Run:
    """Write a run; ``planted`` returns further columns of a trial, by its rung and block."""

    def plant(treatment: Treatment, block: int, position: int) -> tuple[Any, pd.DataFrame, Any]:
        requests = posts(treatment.levels["connection"] == "per_request")
        columns = {
            **part_columns(requests),
            "success_share": 1 - 0.01 * position - 0.002 * block,
            "server_cpu_us_per_request": 50.0,
            "throughput_rps": 2000.0 * (1 + 0.02 * block),
            "mean_ms": 0.1 + 0.01 * position,
            **planted(treatment.levels["rung"], block),
        }
        return columns, requests, {}

    wanted = {"sets": sets, "blocks": blocks, **parameters}
    return write_planned(root, "connection_lifecycle", plant, cores, **wanted)
