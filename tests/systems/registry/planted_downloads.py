"""A run of downloads with planted batches, written through the real store: no service, no load."""

from __future__ import annotations

import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from perflab.host.placing import placement
from perflab.recordings import Run, RunWriter, trial_id
from perflab.stacks.process_backend import choose
from perflab.systems import experiment
from perflab.systems.registry.counts import COUNTED, counted_columns, download_columns
from perflab.systems.registry.rungs import RUNGS, lanes
from perflab.trials.conductor import new_record
from tests.support.synthetic import HOUR_NS

S = 1_000_000_000
CLIENTS, EACH_S, TIMEOUT_S = 20, 3.0, 30.0
LOOK_S = 0.5


# A planted run need not survive a crash of the machine.
@patch("os.fsync", new=lambda _: None)
def write_downloads(
    root: Path, sets: tuple[str, ...] = ("ladder",), blocks: int = 1, rungs: tuple[str, ...] = ()
) -> Run:
    """Write a run whose downloads end in batches of as many as the rung lets run at a time."""
    downloads = experiment("registry_downloads")
    parameters = {"sets": sets, "clients": CLIENTS, "blocks": blocks, "seed": 1, "rungs": rungs}
    plan = downloads.plan(downloads.check(parameters))
    writer = RunWriter.create(root, new_record(plan, choose("process"), placement()))
    for block in range(blocks):
        for position, treatment in enumerate(plan.treatments):
            rung = treatment.levels["rung"]
            requests, progress = batches(rung)
            counts = looks(rung, float(requests["done_ns"].max() - HOUR_NS) / S)
            end_ns = int(requests["done_ns"].max())
            row = {
                "trial_id": trial_id(block, position, 0), "block": block, "position": position,
                "attempt": 0, "treatment": treatment.name, "state": "valid", "reasons": [],
                **{f"factor_{name}": level for name, level in treatment.levels.items()},
                **counted_columns(counts, HOUR_NS, end_ns),
            }  # fmt: skip
            if RUNGS[rung].load_from == "inside":
                others = {"other_load": told_of(requests)}
                row |= told_columns(download_columns(requests))
                requests = requests.head(3)  # the lab's own probes
            else:
                others = {"progress": progress}
                row |= download_columns(requests)
                row["mean_ms"] = float((requests["done_ns"] - requests["planned_ns"]).mean()) / 1e6
            writer.commit_trial(row, requests, None, registry_counts=counts, **others)
    writer.update(state="finished", finished_at="2026-01-02T03:14:05Z")
    return Run(writer.path)


def batches(rung: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the requests of a trial and their progress."""
    number = 1 if RUNGS[rung].one_client else CLIENTS
    at_a_time = lanes(RUNGS[rung], cores=2) or number
    end_s = [EACH_S * (1 + place // at_a_time) + 0.01 * place for place in range(number)]
    gave_up = np.array(end_s) > TIMEOUT_S
    done = HOUR_NS + (np.minimum(end_s, TIMEOUT_S) * S).astype(np.int64)
    requests = pd.DataFrame(
        {
            "stage": "measure",
            "worker": np.zeros(number, np.int16),
            "user": np.arange(number, dtype=np.int32),
            "planned_ns": np.full(number, HOUR_NS),
            "started_ns": np.full(number, HOUR_NS),
            "sent_ns": np.full(number, HOUR_NS),
            "first_byte_ns": np.where(gave_up, 0, done - S // 5),
            "done_ns": done,
            "connect_ns": np.zeros(number, np.int64),
            "status": np.where(gave_up, 0, 200).astype(np.int16),
            "bytes": np.where(gave_up, 0, 2_483_401),
            "error": np.where(gave_up, "timeout", ""),
            "phase_get_ms": np.where(gave_up, math.nan, 1e3 * EACH_S - 250).astype(np.float32),
        }
    )
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
