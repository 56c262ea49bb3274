"""Whether services still warmed up while they were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from perflab.analysis.decision import MARGIN
from perflab.errors import RowsMissing
from perflab.recordings import Run
from perflab.statistics.mean_intervals import (
    CONFIDENCE,
    SMALLEST_N,
    SMALLEST_SIGNED_RANK,
    mean_interval,
)

# The remark of a run whose services were not warm after the longest warm-up.
UNFINISHED = "warmup.unfinished"
PARTS = 3
# With too few blocks for an interval every trial must have fallen so far.
FALL_OF_FEW = math.log(0.9)


def still_warming(run: Run) -> list[str]:
    """Return a sentence for each treatment whose trials became faster while they were measured.

    In each valid trial the mean response time of the last third of the measured successes is held
    against that of the first. It must certainly have fallen by more than the margin of "no
    difference" over the blocks: the whole 95% interval of the mean log ratio lies beyond it.
    With three to five blocks every trial must have fallen by more than 10%. Where nothing changes,
    and the last third differs from the first by 10% by chance (one standard deviation), 0.3%, 0.05%
    and 0.01% of runs of 3, 4 and 5 blocks do so (simulated; 2.7%, 0.8% and 0.2% with 20%). Where no
    fall is certain, what the lab noted while it looked for the warm-up is told.
    """
    try:
        requests = run.requests()
    except RowsMissing:
        return []
    good = requests[requests["error"] == ""]
    sentences = []
    for treatment in run.record.treatments:
        name = "/".join(treatment.levels.values())
        falls = np.array([*_changes(good[good["treatment"] == treatment.name])])
        noted = [
            remark.text
            for remark in run.record.warnings
            if remark.code == UNFINISHED and remark.text.startswith(f"{name} ")
        ]
        change = _certain_fall(falls)
        if change is not None:
            faster = -math.expm1(change)
            sentences.append(
                f"{name} is still warming up: {faster:.0%} faster at the end of its trials than at "
                "the beginning"
            )
        else:
            sentences += noted
    return sentences


def _certain_fall(changes: np.ndarray) -> float | None:
    """Return the change of trials that certainly became faster, as a log ratio; None of others."""
    if len(changes) >= SMALLEST_SIGNED_RANK:
        change = mean_interval(changes, CONFIDENCE)
        return change.estimate if change.high < -math.log1p(MARGIN) else None
    has_fallen = len(changes) >= SMALLEST_N and (changes < FALL_OF_FEW).all()
    return float(changes.mean()) if has_fallen else None


def _changes(requests: pd.DataFrame) -> Iterator[float]:
    """Yield the log ratio of the last third's mean to that of the first third, of each trial."""
    for _, of_trial in requests.groupby("trial_id", observed=True):
        in_order = of_trial.sort_values("planned_ns")
        times_ns = (in_order["done_ns"] - in_order["planned_ns"]).to_numpy(float)
        third = len(times_ns) // PARTS
        if third:
            yield math.log(times_ns[-third:].mean() / times_ns[:third].mean())
