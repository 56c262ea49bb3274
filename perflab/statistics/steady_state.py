"""Whether a trial settles: change points of throughput and latency over its windows.

A trial never settles if it is of the class "no steady state" of E. Barrett, C. F. Bolz-Tereick,
R. Killick, S. Mount, L. Tratt, "Virtual machine warmup blows hot and cold", OOPSLA 2017.

The change points are those of the least-squares partition. It is exact (the optimum that PELT finds
too: R. Killick, P. Fearnhead, I. A. Eckley, J. Am. Stat. Assoc. 107, 2012; at a few hundred windows
its pruning saves nothing). The noise is assumed to be AR(1); its first estimate comes from
differences, which changes of the mean touch in a few places only (S. Chakar, E. Lebarbier,
C. Lévy-Leduc, S. Robin, Bernoulli 23, 2017). Outliers are drawn in first, because a change lasts
(P. Fearnhead, G. Rigaill, J. Am. Stat. Assoc. 114, 2019, reach the same with a bounded loss).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

# Shorter segments are outliers, not levels.
SMALLEST_SEGMENT = 4
# Penalty per change in long-run variances times log n. The usual 2 accepts false changes in AR(1)
# noise, because the autocorrelation is itself estimated from the windows.
PENALTY = 3.0
OUTLIER = 3.0
RUNNING = 7
KEPT_DIFFERENCES = 0.8
LARGEST_RHO = 0.8
# As PENALTY, but in variances of innovations. It is larger because the first window of each level
# was chosen too.
WANDERING_PENALTY = 4.0
LARGEST_WANDERING = 0.99
# The long-run variance that the first partition assumes, in squared differences: AR(1) at 0.4.
PILOT = 2.0
# Added to the estimated autocorrelation, over root n: too low an estimate gives false changes.
RHO_MARGIN = 0.3


@dataclass(frozen=True)
class Noise:
    """The deviation of single values; a mean of n values has ``long_run / sqrt(n)``."""

    deviation: float
    rho: float

    @property
    def long_run(self) -> float:
        """The deviation of a sum of n values over root n, for large n (AR(1))."""
        return self.deviation * math.sqrt((1 + self.rho) / (1 - self.rho))


def calmed(x: np.ndarray) -> np.ndarray:
    """Return ``x`` with single outliers drawn in to 3 deviations from the running median."""
    from scipy import ndimage, stats

    middle = ndimage.median_filter(x, size=min(RUNNING, len(x)), mode="mirror")
    away = x - middle
    spread = float(stats.median_abs_deviation(away, scale="normal"))
    # If most values are equal, the median deviation is 0: use the mean deviation.
    spread = spread or float(np.abs(away).mean()) * math.sqrt(math.pi / 2)
    # The running median follows the noise a little, so its residuals are too small.
    reach = OUTLIER * 1.1 * spread
    drawn_in: np.ndarray = middle + np.clip(away, -reach, reach)
    return drawn_in


def noise(x: np.ndarray, least: float) -> Noise:
    """Return the noise of ``x``, shape (n,), n >= 4, around a mean that changes now and then.

    A first partition, with a penalty from differences (changes of the mean touch few of them),
    gives residuals. Their autocorrelation at lag 1, corrected for the fitted means, gives the
    AR(1). ``least`` is a floor for the deviation.
    """
    n = len(x)
    pilot = PILOT * max(_trimmed_square(np.diff(x)), least**2)
    begins = partition(x, PENALTY * math.log(n) * pilot)
    rest = np.concatenate([part - part.mean() for part in np.split(x, begins[1:])])
    total = float(rest @ rest)
    if total <= n * least**2:
        return Noise(least, 0.0)
    rho = float(rest[1:] @ rest[:-1]) / total
    # Bias of the lag-1 autocorrelation around k fitted means: M. H. Quenouille, 1949; F. H. C.
    # Marriott, J. A. Pope, Biometrika 41, 1954.
    rho += len(begins) * (1 + 3 * max(0.0, rho)) / n + RHO_MARGIN / math.sqrt(n)
    rho = min(LARGEST_RHO, max(0.0, rho))
    lost = len(begins) * (1 + rho) / (1 - rho)
    return Noise(max(least, math.sqrt(total / max(n - lost, n / 2))), rho)


def beyond_wandering(x: np.ndarray, begins: list[int]) -> tuple[bool, Noise]:
    """Return whether levels explain ``x`` better than wandering, and the noise of the wandering.

    A series that wanders (AR(1) near 1) around one mean can be cut into levels, just like one that
    jumps. Both models are fitted with AR(1) noise, and the levels must lower the variance of the
    innovations by more than the penalty for their number.
    """
    n, changes = len(x), len(begins) - 1
    rest = np.concatenate([part - part.mean() for part in np.split(x, begins[1:])])
    alone, rho = _innovations(x - x.mean())
    with_levels, _ = _innovations(rest)
    gain = n * math.log(max(alone, 1e-300) / max(with_levels, 1e-300))
    rho = min(LARGEST_WANDERING, max(0.0, rho + (1 + 3 * max(0.0, rho)) / n))
    wandering = Noise(math.sqrt(alone / (1 - rho**2)), rho)
    return gain > WANDERING_PENALTY * math.log(n) * changes, wandering


def _innovations(x: np.ndarray) -> tuple[float, float]:
    """Return the variance of the innovations of an AR(1) around 0, and its autocorrelation."""
    earlier = float(x[:-1] @ x[:-1])
    rho = float(x[1:] @ x[:-1]) / earlier if earlier > 0 else 0.0
    rho = min(1.0, max(0.0, rho))
    innovations = x[1:] - rho * x[:-1]
    return float(innovations @ innovations) / len(innovations), rho


def _trimmed_square(differences: np.ndarray) -> float:
    """Return the variance of normal differences around 0, from the smaller share of them."""
    from scipy import stats

    squares = np.sort(differences**2)[: max(1, math.ceil(KEPT_DIFFERENCES * len(differences)))]
    edge = stats.norm.ppf((1 + KEPT_DIFFERENCES) / 2)
    kept_variance = 1 - 2 * edge * stats.norm.pdf(edge) / KEPT_DIFFERENCES
    return float(squares.mean() / kept_variance)


def partition(x: np.ndarray, penalty: float, smallest: int = SMALLEST_SEGMENT) -> list[int]:
    """Return where each segment of the best partition begins; the first is 0.

    Minimises the sum of squares within segments plus ``penalty`` per segment.

    Parameters
    ----------
    x : array, shape (n,)
        Finite values.
    penalty : float
        In squared units of ``x``.
    smallest : int
        The least length of a segment; a shorter series is one segment.
    """
    n = len(x)
    sums = np.concatenate([[0.0], np.cumsum(x - x.mean())])
    squares = np.concatenate([[0.0], np.cumsum((x - x.mean()) ** 2)])
    best, begin = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(smallest, n + 1):
        starts = np.arange(end - smallest + 1)
        within = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + within + penalty
        begin[end] = int(np.argmin(costs))
        best[end] = costs[begin[end]]
    begins, end = [], n
    while end > 0:
        end = int(begin[end])
        begins.append(end)
    return begins[::-1] or [0]


SMALLEST_WINDOWS = 12
# Smaller relative changes of a level do not make a trial unsteady.
TOLERANCE = 0.02
# No rate and no time is as small as this; its logarithm and inverse still exist.
NOTHING = 1e-12
SETTLED_SHARE = 0.25
# A drift counts if it is certain (p) and moves the level by more than DRIFT in the steady part.
DRIFT, DRIFT_P = 0.05, 0.005


def never_settles(throughput: ArrayLike, latency: ArrayLike) -> str:
    """Return why a trial never settles, by either of two series; empty if it settles.

    A trial has not settled if its last level fills less than a quarter of the windows, or drifts.
    Windows that leave the level and return to it are part of the measurement. A trial with fewer
    than 12 usable windows of throughput is not judged.

    Parameters
    ----------
    throughput, latency : array_like, shape (windows,)
        Values of consecutive windows of equal width. Latency is a typical response time, used on
        logs; it is NaN in a window without an answer.
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
    """Return the number of trials that never settle, by treatment, from a table of windows.

    Parameters
    ----------
    table : DataFrame
        trial_id, treatment, start_ns, throughput_rps, p50_ms.
    """
    return Counter(
        str(rows["treatment"].iloc[0])
        for _, rows in table.sort_values("start_ns").groupby("trial_id")
        if never_settles(rows["throughput_rps"], rows["p50_ms"])
    )


def _relative(values: np.ndarray, logs: bool = False) -> np.ndarray:
    """Return usable values as relative differences from the typical one."""
    positive = np.isfinite(values) & (values > NOTHING)
    if not positive.any():
        return np.zeros(0)
    typical = float(np.median(values[positive]))
    usable = values[positive if logs else np.isfinite(values) & (values >= 0)] / typical
    relative: np.ndarray = np.log(usable) if logs else usable - 1
    return relative


def _trouble(x: np.ndarray) -> str:
    """Return why a series has not settled, or an empty string."""
    level_noise = noise(x, least=TOLERANCE / 2)
    begins = partition(x, PENALTY * math.log(len(x)) * level_noise.long_run**2)
    shown, wandering = beyond_wandering(x, begins)
    if not shown:
        begins = [0]
    if len(begins) == 1 and wandering.long_run > level_noise.long_run:
        level_noise = wandering
    lengths = np.diff([*begins, len(x)])
    levels = np.add.reduceat(x, begins) / lengths
    # Two levels count as one if they differ by no more than the noise of their means explains.
    doubt = 2 * level_noise.long_run * np.sqrt(1 / lengths + 1 / lengths[-1])
    same = np.abs(levels - levels[-1]) <= np.maximum(TOLERANCE, doubt)
    same[-1] = True
    first = int(np.argmax(same))
    tail = int(np.flatnonzero(~same)[-1]) + 1 if not same.all() else 0
    return (
        _drift(x, begins, level_noise.long_run)
        or _last_level(x, begins[first], begins[tail], level_noise.long_run)
        or _steps_one_way(x)
    )


def _drift(x: np.ndarray, begins: list[int], long_run: float) -> str:
    """Return that the series drifts if one straight line fits it as well as its levels do."""
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


def _steps_one_way(x: np.ndarray) -> str:
    """Return that the series drifts if its steps go one way, beyond what a random walk explains.

    An even climb looks like noise of the longest memory, for which no change of level is too
    large. The steps of a random walk are independent, so the t test of their mean separates a walk
    from a drift. The steps of a series that keeps its level undo each other, so for it the test is
    conservative.
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
    """Return that the last level is too short, or drifts after the warm-up."""
    from scipy import stats

    if len(x) - tail < max(2 * SMALLEST_SEGMENT, SETTLED_SHARE * len(x)):
        return f"its last level fills only {len(x) - tail} of {len(x)} windows"
    rest = x[cut:]
    slope, error = _slope(rest)
    moved, doubt = slope * len(rest), long_run * error * float(stats.norm.isf(DRIFT_P / 2))
    if abs(moved) > DRIFT and abs(slope) > doubt:
        return f"drifts by {moved:+.0%} over the {len(rest)} windows after the cut"
    return ""
