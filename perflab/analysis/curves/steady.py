"""When a trial has warmed up, and whether it ever does.

Change points of throughput and latency over the windows of one trial; the warm-up ends where the
first level begins that equals the last one. The classes are those of E. Barrett, C. F.
Bolz-Tereick, R. Killick, S. Mount, L. Tratt, "Virtual machine warmup blows hot and cold", OOPSLA
2017.

Chosen over MSER-5 (K. P. White, Simulation 69, 1997) by simulation (``benchmarks/coverage.py``):
MSER-5 cuts where the standard error happens to be least, which is past the begin in four of ten
trials that had no warm-up, and it cannot say that a trial never settles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
from perflab.analysis.curves.correlation import check_columns
from perflab.errors import AnalysisError

SMALLEST_WINDOWS = 12
# Smaller relative changes of a level do not make a trial unsteady.
TOLERANCE = 0.02
# No rate and no time is that small; its logarithm and inverse still exist.
NOTHING = 1e-12
SETTLED_SHARE = 0.25
# A drift counts when it is beyond doubt and moves a level by more than this in the steady part.
DRIFT, DRIFT_P = 0.05, 0.005
STEADY, WARM_UP, SLOWDOWN = "steady", "warm-up", "slowdown"
NEVER, NOT_JUDGED = "never settles", "not judged"


@dataclass(frozen=True)
class SteadyState:
    """What the windows of one trial say about its warm-up.

    ``cut_s`` is the instant, from the first window's begin, before which windows do not count: 0
    where there was no warm-up, NaN where ``kind`` is "not judged". ``kind`` is "steady",
    "warm-up" (worse at first), "slowdown" (better at first), "never settles" or "not judged".
    ``settled`` is False for the last two; ``n`` are the windows.
    """

    cut_s: float
    settled: bool
    kind: str
    reason: str
    n: int


@dataclass(frozen=True)
class _Course:
    """What one series says: where it settles, its first and last level, why it has not settled."""

    cut: int
    first_level: float
    last_level: float
    trouble: str


def steady_state(
    throughput: ArrayLike,
    latency: ArrayLike | None = None,
    width_s: float = 0.1,
) -> SteadyState:
    """Find where the warm-up of one trial ends.

    Parameters
    ----------
    throughput : array_like, shape (windows,)
        Of consecutive windows of equal width; at least 12 finite ones are needed.
    latency : array_like, shape (windows,), optional
        A typical response time per window; windows without an answer are NaN. Used on logs.
    width_s : float
        Width of a window in seconds.

    Raises
    ------
    AnalysisError
        Series of different lengths, or a width that is not positive.

    Notes
    -----
    Both series are judged by themselves and the worse answer counts. A trial has not settled where
    its last level fills less than a quarter of the windows, or drifts on. A spell that leaves the
    level and returns to it is not cut: it belongs to what was measured.

    Sources: see this module and :mod:`perflab.analysis.curves.changepoints`.
    """
    if not width_s > 0:
        raise AnalysisError(f"width_s = {width_s} must be above 0")
    series = {"throughput": np.asarray(throughput, dtype=float).ravel()}
    if latency is not None:
        series["latency"] = np.asarray(latency, dtype=float).ravel()
    n = len(series["throughput"])
    if any(len(each) != n for each in series.values()):
        raise AnalysisError(f"throughput has {n} windows, latency {len(series['latency'])}")
    courses, too_few = {}, {}
    for name, values in series.items():
        places, relative = _relative(values, logs=name == "latency")
        if len(places) < SMALLEST_WINDOWS:
            too_few[name] = f"{name}: {len(places)} usable windows, {SMALLEST_WINDOWS} are needed"
        else:
            courses[name] = _course(places, relative)
    if "throughput" in too_few:
        return SteadyState(math.nan, False, NOT_JUDGED, too_few["throughput"], n)
    return _judged(courses, n, width_s)


def steady_table(table: pd.DataFrame, latency: str = "p50_ms") -> pd.DataFrame:
    """Return the steady state of every trial in a table of windows.

    Columns: trial_id, treatment, kind, settled, cut_s, cut_ns (the instant in the clock of
    ``start_ns``, NaN where not judged), windows, reason.

    Raises
    ------
    AnalysisError
        A column is missing.
    """
    needed = ["trial_id", "treatment", "start_ns", "throughput_rps", latency]
    check_columns(table, "windows", needed)
    columns = ["trial_id", "treatment", "kind", "settled", "cut_s", "cut_ns", "windows", "reason"]
    rows = []
    for trial, own in table.sort_values("start_ns").groupby("trial_id", sort=True):
        begins = own["start_ns"].to_numpy(float)
        width_s = float(np.median(np.diff(begins))) / 1e9 if len(own) > 1 else 1.0
        found = steady_state(own["throughput_rps"], own[latency], width_s)
        rows.append(
            {
                "trial_id": trial,
                "treatment": own["treatment"].iloc[0],
                "kind": found.kind,
                "settled": found.settled,
                "cut_s": found.cut_s,
                "cut_ns": begins[0] + found.cut_s * 1e9,
                "windows": found.n,
                "reason": found.reason,
            }
        )
    return pd.DataFrame(rows, columns=columns)


def _relative(values: np.ndarray, logs: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of usable values, and these as relative differences from the typical."""
    positive = np.isfinite(values) & (values > NOTHING)
    if not positive.any():
        return np.arange(0), np.zeros(0)
    typical = float(np.median(values[positive]))
    places = np.flatnonzero(positive if logs else np.isfinite(values) & (values >= 0))
    kept = values[places] / typical
    return places, np.log(kept) if logs else kept - 1


def _course(places: np.ndarray, relative: np.ndarray) -> _Course:
    x = calmed(relative)
    own = noise(x, least=TOLERANCE / 2)
    begins = partition(x, PENALTY * math.log(len(x)) * own.long_run**2)
    shown, wandering = beyond_wandering(x, begins)
    if not shown:
        begins = [0]
    if len(begins) == 1 and wandering.long_run > own.long_run:
        own = wandering
    ends = [*begins[1:], len(x)]
    levels = np.array([x[b:e].mean() for b, e in zip(begins, ends, strict=True)])
    lengths = np.array(ends) - begins
    # Two levels are one where they differ by no more than the noise of their means lets them.
    doubt = 2 * own.long_run * np.sqrt(1 / lengths + 1 / lengths[-1])
    same = np.abs(levels - levels[-1]) <= np.maximum(TOLERANCE, doubt)
    same[-1] = True
    first = int(np.argmax(same))
    tail = int(np.flatnonzero(~same)[-1]) + 1 if not same.all() else 0
    trouble = (
        _drift(x, begins, own.long_run)
        or _trouble(x, begins[first], begins[tail], own.long_run)
        or _marches(x)
    )
    cut = int(places[begins[first]]) if first else 0
    return _Course(cut, float(levels[0]), float(levels[-1]), trouble)


def _drift(x: np.ndarray, begins: list[int], long_run: float) -> str:
    """Return that the series drifts where one straight line fits it as well as its levels do."""
    t = np.arange(len(x)) - (len(x) - 1) / 2
    slope = float(t @ x / (t @ t))
    line = float(((x - x.mean() - slope * t) ** 2).sum())
    steps = sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(x, begins[1:]))
    penalty = PENALTY * math.log(len(x)) * long_run**2
    as_well = len(begins) > 1 and line <= steps + penalty * (len(begins) - 2)
    if as_well and abs(slope) * len(x) > DRIFT:
        return f"drifts by {slope * len(x):+.0%} over all {len(x)} windows"
    return ""


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


def _trouble(x: np.ndarray, cut: int, tail: int, long_run: float) -> str:
    """Return why the series has not settled, or an empty string."""
    from scipy import stats

    if len(x) - tail < max(2 * SMALLEST_SEGMENT, SETTLED_SHARE * len(x)):
        return f"its last level fills only {len(x) - tail} of {len(x)} windows"
    rest = x[cut:]
    t = np.arange(len(rest)) - (len(rest) - 1) / 2
    slope = float(t @ rest / (t @ t))
    moved = slope * len(rest)
    doubt = long_run * float(stats.norm.isf(DRIFT_P / 2))
    if abs(moved) > DRIFT and abs(slope) * math.sqrt(t @ t) > doubt:
        return f"drifts by {moved:+.0%} over the {len(rest)} windows after the cut"
    return ""


def _judged(courses: dict[str, _Course], n: int, width_s: float) -> SteadyState:
    slowest = max(courses, key=lambda name: courses[name].cut)
    cut_s = round(courses[slowest].cut * width_s, 9)
    wrong = [f"{name} {course.trouble}" for name, course in courses.items() if course.trouble]
    if wrong:
        return SteadyState(cut_s, False, NEVER, "; ".join(wrong), n)
    if cut_s == 0:
        reason = f"no change of level at the begin of {n} windows"
        return SteadyState(0.0, True, STEADY, reason, n)
    course = courses[slowest]
    better = (course.first_level > course.last_level) == (slowest == "throughput")
    kind = SLOWDOWN if better else WARM_UP
    apart = _factor(course, slowest)
    reason = f"{slowest} was {apart} its later level at first, until {cut_s:.3g} s"
    return SteadyState(cut_s, True, kind, reason, n)


def _factor(course: _Course, name: str) -> str:
    if name == "latency":
        return f"{math.exp(course.first_level - course.last_level):.2g} times"
    if 1 + course.last_level <= NOTHING:
        return "above 0, unlike"
    return f"{(1 + course.first_level) / (1 + course.last_level):.2g} times"
