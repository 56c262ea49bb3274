"""Quantiles of one trial and typical values across trials, with intervals where n allows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perflab.errors import AnalysisError
from perflab.statistics.mean_intervals import CONFIDENCE, t_margin

TAIL = (1 - CONFIDENCE) / 2
# The percentiles in the row of a trial, and in the summary of a load.
OF_TRIALS = (50, 90, 95, 99)
OF_LOADS = (*OF_TRIALS, 99.9)
# Fewer trials than these have no interval: with one degree of freedom t is 12.7.
FEWEST_TRIALS = 3
# Requests that were cut off, lost or never answered may move a number by at most this share.
MAX_MOVED_SHARE = 0.05


def smallest_n(p: float) -> int:
    """Return the smallest n whose extremes bound the p-quantile with 95% confidence.

    Each tail gets half of 5%: the largest of n values lies below the p-quantile with probability
    p^n and the smallest above it with (1 - p)^n; both must be at most that half. This gives 72 for
    p95, 368 for p99 and 3,688 for p99.9.

    AnalysisError where p is not inside (0, 1).
    """
    if not 0 < p < 1:
        raise AnalysisError(f"p = {p} must lie between 0 and 1")
    return math.ceil(math.log(TAIL) / math.log(max(p, 1 - p)))


def needed_n(percentile: float) -> int:
    """Return how many values a percentile (0 to 100) needs; the largest value needs one."""
    return smallest_n(percentile / 100) if percentile < 100 else 1


def percentiles_of(values: np.ndarray, shares: Sequence[float]) -> dict[float, float]:
    """Return percentiles (0 to 100) of one sample; NaN for those that it is too small for."""
    known = [share for share in shares if len(values) >= needed_n(share)]
    values_of_known = np.percentile(values, known).tolist() if known else []
    return dict.fromkeys(shares, math.nan) | dict(zip(known, values_of_known, strict=True))


@dataclass(frozen=True)
class Bound:
    """The two ends between which a number lies; ``high`` is infinite where nothing limits it.

    Both are NaN where the sample is too small for the number.
    """

    low: float
    high: float

    @property
    def value(self) -> float:
        """Return the number if its ends are at most 5% apart, else NaN."""
        return self.low if self.high <= self.low * (1 + MAX_MOVED_SHARE) else math.nan

    @property
    def at_least(self) -> float:
        """Return the lower end if there is no :attr:`value`, else NaN."""
        return self.low if math.isnan(self.value) else math.nan


def bounds_of(
    known: np.ndarray, elapsed: np.ndarray, shares: Sequence[float]
) -> dict[float, Bound]:
    """Return percentiles of values some of which were cut off, each between its bounds.

    ``known`` are the complete values. The others would have been larger than the ``elapsed`` values
    at which they were cut off.

    The lower bound takes a value that was cut off as it is, the upper bound takes it as infinite. A
    percentile whose rank is below that of all values that were cut off is exact.
    """
    lows = percentiles_of(np.concatenate([known, elapsed]), shares)
    if not len(elapsed):
        return {share: Bound(low, low) for share, low in lows.items()}
    # The percentile of all values, as a percentile of the known ones.
    last = len(known) - 1
    places = {share: share / 100 * (last + len(elapsed)) for share in shares}
    within = {share: place for share, place in places.items() if math.ceil(place - 1e-9) <= last}
    highs = dict.fromkeys(shares, math.inf)
    if within:
        ranks = [min(100.0, 100 * place / max(1, last)) for place in within.values()]
        highs |= zip(within, np.percentile(known, ranks).tolist(), strict=True)
    return {
        share: Bound(low, math.nan if math.isnan(low) else highs[share])
        for share, low in lows.items()
    }


def mean_bound(known: np.ndarray, elapsed: np.ndarray) -> Bound:
    """Return the bounds of a mean; if a value was cut off, the mean has no upper bound."""
    total = len(known) + len(elapsed)
    if not total:
        return Bound(math.nan, math.nan)
    low = (float(known.sum()) + float(elapsed.sum())) / total
    return Bound(low, math.inf if len(elapsed) else low)


def hidden_share(known: np.ndarray, missing: int, quantile: float) -> float:
    """Return the share by which a quantile rises if all missing values are the highest.

    Nothing is known of the missing values, not even when they were cut off. At most
    ``MAX_MOVED_SHARE`` is tolerated. The share is infinite if the quantile is a missing value.
    """
    place = quantile * (len(known) + missing) / len(known) if len(known) else math.inf
    if place > 1:
        return math.inf
    usual, worst = np.quantile(known, [quantile, place])
    return float(worst / usual - 1)


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    ``supported`` is False where the sample is too small for a 95% interval; then ``low`` and
    ``high`` are NaN, and a text that shows the value must say so.
    """

    value: float
    low: float
    high: float
    n: int
    supported: bool
    method: str


def quantile(values: ArrayLike, p: float) -> Estimate:
    """Estimate a quantile with its distribution-free order-statistic interval.

    The interval runs from the l-th to the u-th smallest value, with l and u from the binomial
    distribution so that each tail holds at most 2.5%. It assumes independent values. Requests
    within one trial are autocorrelated, so their interval is too short: compare treatments by
    :func:`across_trials` only. NaNs are left out. It is not supported where n <
    :func:`smallest_n`.

    Source: H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1.
    """
    from scipy import stats

    x, least, method = _finite(values), smallest_n(p), "order statistics"
    n = len(x)
    value = float(np.quantile(x, p)) if n else math.nan
    if n < least:
        return Estimate(value, math.nan, math.nan, n, False, method)
    lower = max(1, int(stats.binom.ppf(TAIL, n, p)))
    upper = min(n, int(stats.binom.ppf(1 - TAIL, n, p)) + 1)
    return Estimate(value, float(x[lower - 1]), float(x[upper - 1]), n, True, method)


def across_trials(values: ArrayLike) -> Estimate:
    """Estimate the typical value of a response over trials: the unit is the trial.

    From 6 trials on this is the median with its order-statistic (sign test) interval. Fewer trials
    have no such interval at 95%: then it is the geometric mean with a t interval on logs. With
    fewer than 3 trials, whose t interval would span decades, or with values without a logarithm, it
    is the median without an interval. NaNs are left out.

    Source: David and Nagaraja as in :func:`quantile`.
    """
    x = _finite(values)
    n = len(x)
    if n >= smallest_n(0.5):
        return quantile(x, 0.5)
    if n < FEWEST_TRIALS or (x <= 0).any():
        value = float(np.median(x)) if n else math.nan
        return Estimate(value, math.nan, math.nan, n, False, "none")
    logs = np.log(x)
    low, high = map(math.exp, t_interval(logs))
    return Estimate(math.exp(float(logs.mean())), low, high, n, True, "t on logs")


def t_interval(x: np.ndarray) -> tuple[float, float]:
    """Return Student's 95% interval of a mean over trials or blocks; NaN below 2."""
    if len(x) < 2:
        return math.nan, math.nan
    margin = t_margin(float(x.std(ddof=1)) / math.sqrt(len(x)), len(x))
    return float(x.mean()) - margin, float(x.mean()) + margin


def _finite(values: ArrayLike) -> np.ndarray:
    x = np.asarray(values, dtype=float).ravel()
    return np.sort(x[np.isfinite(x)])
