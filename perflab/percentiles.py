"""How large a sample must be before a percentile of it may be named: one rule for the whole lab.

Stop rules, the self-check, the capacity search, summaries and figures all ask here.
"""

from __future__ import annotations

import math

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


def check(p: float, confidence: float) -> None:
    """Refuse what is no share.

    Raises
    ------
    AnalysisError
        p or the confidence is not inside (0, 1).
    """
    if not 0 < p < 1 or not 0 < confidence < 1:
        raise AnalysisError(f"p = {p} and confidence = {confidence} must lie between 0 and 1")
