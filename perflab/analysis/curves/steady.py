"""Whether a trial ever settles: change points of throughput and latency over its windows.

What counts as never settling is the class "no steady state" of E. Barrett, C. F. Bolz-Tereick,
R. Killick, S. Mount, L. Tratt, "Virtual machine warmup blows hot and cold", OOPSLA 2017.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from perflab.analysis.curves.changepoints import (
    PENALTY,
    SMALLEST_SEGMENT,
    beyond_wandering,
    calmed,
    noise,
    partition,
)

SMALLEST_WINDOWS = 12
# Smaller relative changes of a level do not make a trial unsteady.
TOLERANCE = 0.02
# No rate and no time is that small; its logarithm and inverse still exist.
NOTHING = 1e-12
SETTLED_SHARE = 0.25
# A drift counts when it is beyond doubt and moves a level by more than this in the steady part.
DRIFT, DRIFT_P = 0.05, 0.005


def never_settles(throughput: ArrayLike, latency: ArrayLike) -> str:
    """Return why a trial never settles, by the worse of two series; empty where it does.

    A trial has not settled where its last level fills less than a quarter of the windows, or drifts
    on. A spell that leaves the level and returns to it is part of what was measured. Throughput
    with fewer than 12 usable windows is not judged.

    Parameters
    ----------
    throughput, latency : array_like, shape (windows,)
        Of consecutive windows of equal width. Latency is a typical response time, used on logs; it
        is NaN in a window without an answer.
    """
    rates = _relative(np.asarray(throughput, dtype=float))
    times = _relative(np.asarray(latency, dtype=float), logs=True)
    if len(rates) < SMALLEST_WINDOWS:
        return ""
    series = {"throughput": rates, "latency": times}
    return "; ".join(
        f"{name} {trouble}"
        for name, values in series.items()
        if len(values) >= SMALLEST_WINDOWS and (trouble := _trouble(calmed(values)))
    )


def unsettled(table: pd.DataFrame) -> Counter[str]:
    """Return how many trials never settle, by treatment, from a table of windows.

    Parameters
    ----------
    table : DataFrame
        trial_id, treatment, start_ns, throughput_rps, p50_ms.
    """
    return Counter(
        str(own["treatment"].iloc[0])
        for _, own in table.sort_values("start_ns").groupby("trial_id")
        if never_settles(own["throughput_rps"], own["p50_ms"])
    )


def _relative(values: np.ndarray, logs: bool = False) -> np.ndarray:
    """Return usable values as relative differences from the typical one."""
    positive = np.isfinite(values) & (values > NOTHING)
    if not positive.any():
        return np.zeros(0)
    typical = float(np.median(values[positive]))
    kept = values[positive if logs else np.isfinite(values) & (values >= 0)] / typical
    relative: np.ndarray = np.log(kept) if logs else kept - 1
    return relative


def _trouble(x: np.ndarray) -> str:
    """Return why a series has not settled, or an empty string."""
    own = noise(x, least=TOLERANCE / 2)
    begins = partition(x, PENALTY * math.log(len(x)) * own.long_run**2)
    shown, wandering = beyond_wandering(x, begins)
    if not shown:
        begins = [0]
    if len(begins) == 1 and wandering.long_run > own.long_run:
        own = wandering
    lengths = np.diff([*begins, len(x)])
    levels = np.add.reduceat(x, begins) / lengths
    # Two levels are one where they differ by no more than the noise of their means lets them.
    doubt = 2 * own.long_run * np.sqrt(1 / lengths + 1 / lengths[-1])
    same = np.abs(levels - levels[-1]) <= np.maximum(TOLERANCE, doubt)
    same[-1] = True
    first = int(np.argmax(same))
    tail = int(np.flatnonzero(~same)[-1]) + 1 if not same.all() else 0
    return (
        _drift(x, begins, own.long_run)
        or _last_level(x, begins[first], begins[tail], own.long_run)
        or _marches(x)
    )


def _drift(x: np.ndarray, begins: list[int], long_run: float) -> str:
    """Return that the series drifts where one straight line fits it as well as its levels do."""
    slope, _ = _slope(x)
    t = np.arange(len(x)) - (len(x) - 1) / 2
    line = float(((x - x.mean() - slope * t) ** 2).sum())
    steps = sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(x, begins[1:]))
    penalty = PENALTY * math.log(len(x)) * long_run**2
    as_well = len(begins) > 1 and line <= steps + penalty * (len(begins) - 2)
    if as_well and abs(slope) * len(x) > DRIFT:
        return f"drifts by {slope * len(x):+.0%} over all {len(x)} windows"
    return ""


def _slope(x: np.ndarray) -> tuple[float, float]:
    """Return the slope per window, and its standard error where the noise has deviation 1."""
    t = np.arange(len(x)) - (len(x) - 1) / 2
    return float(t @ x / (t @ t)), 1 / math.sqrt(t @ t)


def _marches(x: np.ndarray) -> str:
    """Return that the series drifts even where it may be a walk: its steps go one way.

    An even climb looks like noise of the longest memory, for which no change of level is too
    large. A walk's steps are independent, so that the t test of their mean tells the two apart; of
    a series that keeps to a level, the steps undo each other, and it is conservative.
    """
    from scipy import stats

    steps = np.diff(x)
    moved = float(x[-1] - x[0])
    error = float(stats.sem(steps))
    doubt = error * float(stats.t.isf(DRIFT_P / 2, len(steps) - 1))
    if abs(moved) > DRIFT and abs(float(steps.mean())) > doubt:
        return f"drifts by {moved:+.0%} over all {len(x)} windows"
    return ""


def _last_level(x: np.ndarray, cut: int, tail: int, long_run: float) -> str:
    """Return that the last level is too short, or drifts from the end of the warm-up on."""
    from scipy import stats

    if len(x) - tail < max(2 * SMALLEST_SEGMENT, SETTLED_SHARE * len(x)):
        return f"its last level fills only {len(x) - tail} of {len(x)} windows"
    rest = x[cut:]
    slope, error = _slope(rest)
    moved, doubt = slope * len(rest), long_run * error * float(stats.norm.isf(DRIFT_P / 2))
    if abs(moved) > DRIFT and abs(slope) > doubt:
        return f"drifts by {moved:+.0%} over the {len(rest)} windows after the cut"
    return ""
