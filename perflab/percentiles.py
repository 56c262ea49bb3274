"""How large a sample must be before a percentile of it may be named: one rule for the whole lab.

Stop rules, the self-check, the capacity search, summaries and figures all ask here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perflab.errors import AnalysisError

CONFIDENCE = 0.95
# What a trial's row holds, and what the summary of a load shows.
OF_TRIALS = (50, 90, 95, 99)
OF_LOADS = (*OF_TRIALS, 99.9)


def smallest_n(p: float, confidence: float = CONFIDENCE) -> int:
    """Return the smallest n whose extremes bound the p-quantile at ``confidence``.

    Each tail gets half of 1 - confidence: the largest of n values lies below the p-quantile with
    probability p^n and the smallest above it with (1 - p)^n; both must be at most that half. For
    95% this gives 72 for p95, 368 for p99 and 3,688 for p99.9.

    Raises
    ------
    AnalysisError
        p or the confidence is not inside (0, 1).
    """
    check(p, confidence)
    tail = (1 - confidence) / 2
    return math.ceil(math.log(tail) / math.log(max(p, 1 - p)))


def needed_n(percentile: float) -> int:
    """Return how many values a percentile (0 to 100) needs; the largest value needs one."""
    return smallest_n(percentile / 100) if percentile < 100 else 1


def percentile(values: np.ndarray, share: float) -> float:
    """Return a percentile (0 to 100); NaN where the sample is too small to name it."""
    return percentiles_of(values, (share,))[share]


def percentiles_of(values: np.ndarray, shares: Sequence[float]) -> dict[float, float]:
    """Return several percentiles of one sample; NaN for those that it is too small to name."""
    known = [share for share in shares if len(values) >= needed_n(share)]
    found = np.percentile(values, known).tolist() if known else []
    return dict.fromkeys(shares, math.nan) | dict(zip(known, found, strict=True))


def check(p: float, confidence: float) -> None:
    """Refuse what is no share.

    Raises
    ------
    AnalysisError
        p or the confidence is not inside (0, 1).
    """
    if not 0 < p < 1 or not 0 < confidence < 1:
        raise AnalysisError(f"p = {p} and confidence = {confidence} must lie between 0 and 1")
