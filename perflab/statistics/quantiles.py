"""Quantiles of one trial and typical values across trials, with intervals where n allows them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perflab.statistics.percentiles import CONFIDENCE, check, smallest_n


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    ``supported`` is False where the sample is too small for an interval at ``confidence``; then
    ``low`` and ``high`` are NaN, and a text that shows the value must say so.
    """

    value: float
    low: float
    high: float
    n: int
    confidence: float
    supported: bool
    method: str


def quantile(values: ArrayLike, p: float, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate a quantile with its distribution-free order-statistic interval.

    The interval runs from the l-th to the u-th smallest value, with l and u from the binomial
    distribution so that each tail holds at most (1 - confidence) / 2. It assumes independent
    values. Requests within one trial are autocorrelated, so their interval is too short: compare
    treatments by :func:`across_trials` only. NaNs are left out. ``confidence`` of the result is the
    achieved one; it is not supported where n < :func:`smallest_n`.

    Source: H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1.
    """
    from scipy import stats

    check(p, confidence)
    x = _finite(values)
    n = len(x)
    method = "order statistics"
    value = float(np.quantile(x, p)) if n else math.nan
    if n < smallest_n(p, confidence):
        return Estimate(value, math.nan, math.nan, n, confidence, False, method)
    lower, upper = places(n, p, confidence)
    achieved = float(stats.binom.cdf(upper - 1, n, p) - stats.binom.cdf(lower - 1, n, p))
    return Estimate(value, float(x[lower - 1]), float(x[upper - 1]), n, achieved, True, method)


def places(n: int, p: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Return the ranks l and u, from 1, of the ordered values that bound the p-quantile."""
    from scipy import stats

    tail = (1 - confidence) / 2
    lower = max(1, int(stats.binom.ppf(tail, n, p)))
    upper = min(n, int(stats.binom.ppf(1 - tail, n, p)) + 1)
    return lower, upper


def across_trials(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate the typical value of a response over trials: the unit is the trial.

    From 6 trials on this is the median with its order-statistic (sign test) interval. Fewer trials
    have no such interval at 95%: then it is the geometric mean with a t interval on logs. With
    fewer than 2 trials, or values without a logarithm, it is the median without an interval. NaNs
    are left out.

    Source: David and Nagaraja as in :func:`quantile`.
    """
    x = _finite(values)
    n = len(x)
    if n >= smallest_n(0.5, confidence):
        return quantile(x, 0.5, confidence)
    if n < 2 or (x <= 0).any():
        value = float(np.median(x)) if n else math.nan
        return Estimate(value, math.nan, math.nan, n, confidence, False, "none")
    logs = np.log(x)
    low, high = map(math.exp, t_interval(logs, confidence))
    return Estimate(math.exp(float(logs.mean())), low, high, n, confidence, True, "t on logs")


def t_interval(x: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Student's interval of a mean over trials or blocks; NaN below 2."""
    from scipy import stats

    if len(x) < 2:
        return math.nan, math.nan
    margin = float(stats.t.ppf((1 + confidence) / 2, len(x) - 1) * stats.sem(x))
    return float(x.mean()) - margin, float(x.mean()) + margin


def _finite(values: ArrayLike) -> np.ndarray:
    x = np.asarray(values, dtype=float).ravel()
    return np.sort(x[np.isfinite(x)])
