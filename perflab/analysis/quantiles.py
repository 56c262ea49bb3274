"""Percentiles of one trial, printed only where the sample can support them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Quantile:
    """A percentile with its order-statistic interval; unsupported ones hold NaN."""

    share: float
    value: float
    low: float
    high: float
    n: int

    @property
    def supported(self) -> bool:
        """Return whether the sample is large enough for this percentile."""
        return not math.isnan(self.value)

    def __str__(self) -> str:
        if not self.supported:
            return f"p{self.share * 100:g}: n too small ({self.n} of {smallest_n(self.share)})"
        return f"p{self.share * 100:g}: {self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def smallest_n(share: float, confidence: float = 0.95) -> int:
    """Return the smallest sample whose order statistics bound the percentile on both sides.

    The largest value is above the percentile with probability 1 - share**n, the smallest below it
    with 1 - (1-share)**n; each must reach 1 - (1-confidence)/2 (David and Nagaraja, Order
    Statistics, 2003, section 7.1). p99 needs 368, p99.9 needs 3,688.
    """
    extreme = max(share, 1 - share)
    return math.ceil(math.log((1 - confidence) / 2) / math.log(extreme))


def quantile(values: Sequence[float] | np.ndarray, share: float) -> Quantile:
    """Return a percentile of independent values with a 95% order-statistic interval.

    Requests within a trial are autocorrelated, so for requests the interval is too narrow; use
    the trials' percentiles for comparisons. NaN values are left out.
    """
    sample = np.sort(np.asarray(values, dtype=float))
    sample = sample[~np.isnan(sample)]
    n = len(sample)
    if n < smallest_n(share):
        nothing = float("nan")
        return Quantile(share, nothing, nothing, nothing, n)
    low = max(int(stats.binom.ppf(0.025, n, share)), 1)
    high = min(int(stats.binom.ppf(0.975, n, share)) + 1, n)
    value = float(np.quantile(sample, share))
    return Quantile(share, value, float(sample[low - 1]), float(sample[high - 1]), n)
