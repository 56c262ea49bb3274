"""A planted run of an experiment's own plan, written through the real store, with no service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from perflab.host.placing import placement
from perflab.recordings import Run, RunWriter
from perflab.stacks.process_backend import choose
from perflab.systems import experiment
from perflab.trials.conductor import new_record
from perflab.trials.plan import RunPlan, Treatment
from perflab.trials.summary import identity_columns


def plan_of(name: str, **parameters: Any) -> RunPlan:
    """Return the plan of an experiment with these parameters."""
    chosen = experiment(name)
    return chosen.plan(chosen.check(parameters))


# Columns, requests and further tables of a trial, by its treatment, block and position.
Plant = Callable[[Treatment, int, int], tuple[dict[str, Any], pd.DataFrame | None, dict[str, Any]]]


# A planted run need not survive a crash of the machine.
@patch("os.fsync", new=lambda _: None)
def write_planned(root: Path, name: str, plant: Plant, cores: int = 2, **parameters: Any) -> Run:
    """Write a run of an experiment whose trials are all valid unless planted otherwise."""
    plan = plan_of(name, **{"seed": 1, **parameters})
    placed = placement(range(cores))
    writer = RunWriter.create(root, new_record(plan, choose("process"), placed))
    for block in range(parameters["blocks"]):
        for position, treatment in enumerate(plan.treatments):
            columns, requests, tables = plant(treatment, block, position)
            identity = identity_columns(block, position, 0, treatment.name, treatment.levels)
            row = {**identity, "state": "valid", "reasons": [], **columns}
            writer.commit_trial(row, requests, None, **tables)
    writer.update(state="finished", finished_at="2026-01-02T03:14:05Z")
    return Run(writer.path)


def requests_of(planned_ns: np.ndarray, done_ns: np.ndarray, **columns: Any) -> pd.DataFrame:
    """Return measured requests, one of each user, sent when planned; ``columns`` change them."""
    number = len(planned_ns)
    table = pd.DataFrame(
        {
            "stage": "measure", "worker": np.zeros(number, np.int16),
            "user": np.arange(number, dtype=np.int32), "planned_ns": planned_ns,
            "started_ns": planned_ns, "sent_ns": planned_ns, "first_byte_ns": done_ns,
            "done_ns": done_ns, "connect_ns": np.zeros(number, np.int64),
            "status": np.full(number, 200, np.int16), "bytes": np.full(number, 100), "error": "",
        }
    )  # fmt: skip
    return table.assign(**columns)
