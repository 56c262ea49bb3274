"""The mean over blocks with its interval and p-value: signed rank, or Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perflab.statistics import interim_analysis, signed_rank
from perflab.statistics.interim_analysis import LooksTaken

CONFIDENCE = 0.95
# Values that are less apart count as equal.
NO_DISTANCE = 1e-12
# The fewest blocks for a verdict, and for the signed-rank test.
SMALLEST_N, SMALLEST_SIGNED_RANK = 3, 6


@dataclass(frozen=True)
class MeanInterval:
    """An estimate of a mean (mostly of log ratios), its interval and the achieved confidence."""

    estimate: float
    low: float
    high: float
    confidence: float


def mean_interval(
    x: np.ndarray,
    confidence: float = CONFIDENCE,
    looks: LooksTaken | None = None,
    least_spread: float = 0.0,
) -> MeanInterval:
    """Return estimate and interval of at least 2 log ratios, or differences, as effect_of does.

    With ``looks`` the ends are NaN while there are too few blocks. Without them they are NaN where
    fewer than 6 blocks have no spread: a t interval takes it for ``least_spread`` at least.
    """
    if looks is not None:
        ends = interim_analysis.interval(x, confidence, looks)
        low, high, achieved = ends or (math.nan, math.nan, math.nan)
        return MeanInterval(signed_rank.hodges_lehmann(x), low, high, achieved)
    exact = signed_rank.interval(x, confidence) if len(x) >= SMALLEST_SIGNED_RANK else None
    if exact is not None:
        return MeanInterval(signed_rank.hodges_lehmann(x), *exact)
    mean = float(x.mean())
    margin = t_margin(_standard_error(x, least_spread), len(x), confidence)
    return MeanInterval(mean, mean - margin, mean + margin, confidence)


def mean_p(x: np.ndarray, looks: LooksTaken | None = None, least_spread: float = 0.0) -> float:
    """Return the p-value of "no effect" by the test that :func:`mean_interval` inverts."""
    from scipy import special

    if looks is not None:
        return interim_analysis.p_value(x, looks)
    if len(x) >= SMALLEST_SIGNED_RANK:
        return signed_rank.p_value(x)
    error = _standard_error(x, least_spread)
    return float(2 * special.stdtr(len(x) - 1, -abs(float(x.mean())) / error))


def t_margin(error: float, n: int, confidence: float = CONFIDENCE) -> float:
    """Return how far Student's interval reaches from a mean of n values with a standard error."""
    from scipy import special

    return float(special.stdtrit(n - 1, (1 + confidence) / 2)) * error


def _standard_error(x: np.ndarray, least_spread: float) -> float:
    """Return the standard error of a mean; NaN without any spread, which hides the noise."""
    spread = max(float(x.std(ddof=1)), least_spread)
    return spread / math.sqrt(len(x)) if spread >= NO_DISTANCE else math.nan
