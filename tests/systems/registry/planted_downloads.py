"""The tables of a trial of downloads with planted batches: no service, no load."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from perflab.systems.registry.counts import COUNTED
from perflab.systems.registry.rungs import RUNGS, lanes
from tests.support.synthetic import HOUR_NS
from tests.systems.planned import requests_of

S = 1_000_000_000
CLIENTS, EACH_S, TIMEOUT_S = 20, 3.0, 30.0
LOOK_S = 0.5


def batches(rung: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the requests of a trial and their progress."""
    number = 1 if RUNGS[rung].one_client else CLIENTS
    at_a_time = lanes(RUNGS[rung], cores=2) or number
    end_s = [EACH_S * (1 + place // at_a_time) + 0.01 * place for place in range(number)]
    gave_up = np.array(end_s) > TIMEOUT_S
    done = HOUR_NS + (np.minimum(end_s, TIMEOUT_S) * S).astype(np.int64)
    requests = requests_of(
        np.full(number, HOUR_NS), done, first_byte_ns=np.where(gave_up, 0, done - S // 5),
        status=np.where(gave_up, 0, 200).astype(np.int16), bytes=np.where(gave_up, 0, 2_483_401),
        error=np.where(gave_up, "timeout", ""),
        phase_get_ms=np.where(gave_up, math.nan, 1e3 * EACH_S - 250).astype(np.float32),
    )  # fmt: skip
    complete = requests[~gave_up]
    points = [
        complete.assign(
            request=complete["user"].astype(np.int64), at_ns=complete["done_ns"] - before
        )
        for before in (S // 5, 0)
    ]
    progress = pd.concat(points)[["worker", "user", "request", "planned_ns", "at_ns", "bytes"]]
    return requests, progress.reset_index(drop=True)


def told_columns(columns: dict[str, float]) -> dict[str, float]:
    """Return the columns as the service's own generator counts them."""
    return {name: value for name, value in columns.items() if name.startswith("told_")}


def told_of(requests: pd.DataFrame) -> pd.DataFrame:
    """Return downloads as the service's own generator records them."""
    done_ms = (requests["done_ns"] - HOUR_NS) / 1e6
    is_whole = requests["error"] == ""
    return pd.DataFrame(
        {
            "place": np.arange(len(requests)),
            "start_ms": 0.5,
            "first_byte_ms": (done_ms - 200).where(is_whole),
            "end_ms": done_ms,
            "bytes": requests["bytes"].astype(float),
            "outcome": np.where(is_whole, "done", "timed_out"),
        }
    )


def looks(rung: str, length_s: float) -> pd.DataFrame:
    """Return looks at the counts, without answers if the event loop is blocked."""
    t_ns = HOUR_NS + (np.arange(0.1, length_s + LOOK_S, LOOK_S) * S).astype(np.int64)
    is_silent = RUNGS[rung].handler == "blocking"
    rising = np.arange(len(t_ns), dtype=float)
    numbers = {name: (1 + place) * rising for place, name in enumerate(COUNTED)}
    table = pd.DataFrame({"t_ns": t_ns, "answered_ns": t_ns + 5_000_000, **numbers})
    table["rss_bytes"] = 90e6 + 10e6 * rising
    if is_silent:
        table.loc[1:, "answered_ns"] = 0
        table.loc[1:, [*COUNTED]] = math.nan
    return table
