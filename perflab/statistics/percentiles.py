"""What a sample can tell of its percentiles and mean: one rule for the whole lab.

A percentile needs a sample large enough; and values that were cut off before their end (censored:
requests that ran into a time-out) must not be able to move it. Stop rules, the self-check, the
capacity search, instruments, summaries and figures all ask here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.errors import AnalysisError

CONFIDENCE = 0.95
# What a trial's row holds, and what the summary of a load shows.
OF_TRIALS = (50, 90, 95, 99)
OF_LOADS = (*OF_TRIALS, 99.9)
# How requests end that have no end of their own: cut off, they would have taken longer still. Words
# of the record.
CENSORED = ("timeout", "aborted", "unsent")
# By so much may what was cut off, lost or never answered move a number that is given all the same.
MAX_MOVED_SHARE = 0.05


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


@dataclass(frozen=True)
class Bound:
    """A number that lies between two; ``high`` is infinite where nothing limits it.

    Both are NaN where the sample is too small to name it.
    """

    low: float
    high: float

    @property
    def value(self) -> float:
        """Return the number where its bounds are as good as one (5%), else NaN."""
        return self.low if self.high <= self.low * (1 + MAX_MOVED_SHARE) else math.nan

    @property
    def at_least(self) -> float:
        """Return what the number is at least where it cannot be given, else NaN."""
        return self.low if math.isnan(self.value) else math.nan


def bounds_of(
    known: np.ndarray, elapsed: np.ndarray, shares: Sequence[float]
) -> dict[float, Bound]:
    """Return percentiles of values some of which were cut off, each between its bounds.

    Parameters
    ----------
    known : array
        Values that came to their end.
    elapsed : array
        How large those that did not had become: they would have been at least that.

    Notes
    -----
    The lower bound counts what was cut off as it was then, the upper bound as infinite. A
    percentile below the rank of all that was cut off late, by a time-out, is exact.
    """
    total = len(known) + len(elapsed)
    shown = [share for share in shares if total >= needed_n(share)]
    found = dict.fromkeys(shares, Bound(math.nan, math.nan))
    if not shown:
        return found
    lows = np.percentile(np.concatenate([known, elapsed]), shown).tolist()
    if not len(elapsed):
        return found | {share: Bound(low, low) for share, low in zip(shown, lows, strict=True)}
    # Where a percentile of all lies among those that are known, as a percentile of these.
    last = len(known) - 1
    places = {share: share / 100 * (total - 1) for share in shown}
    within = {share: at for share, at in places.items() if math.ceil(at - 1e-9) <= last}
    highs = dict.fromkeys(shown, math.inf)
    if within:
        ranks = [min(100.0, 100 * at / max(1, last)) for at in within.values()]
        highs |= zip(within, np.percentile(known, ranks).tolist(), strict=True)
    return found | {share: Bound(low, highs[share]) for share, low in zip(shown, lows, strict=True)}


def mean_bound(known: np.ndarray, elapsed: np.ndarray) -> Bound:
    """Return the mean of values some of which were cut off: then nothing limits it from above."""
    total = len(known) + len(elapsed)
    if not total:
        return Bound(math.nan, math.nan)
    low = (float(known.sum()) + float(elapsed.sum())) / total
    return Bound(low, math.inf if len(elapsed) else low)


def hidden_share(known: np.ndarray, missing: int, quantile: float) -> float:
    """Return by what share a quantile would be higher, were all missing values the highest.

    For values of which nothing is known at all, not even when they were cut off; at most
    ``MAX_MOVED_SHARE`` is tolerated. Infinite where the quantile would be one of them.
    """
    place = quantile * (len(known) + missing) / len(known) if len(known) else math.inf
    if place > 1:
        return math.inf
    usual, worst = np.quantile(known, [quantile, place])
    return float(worst / usual - 1)


def check(p: float, confidence: float) -> None:
    """Refuse what is no share.

    Raises
    ------
    AnalysisError
        p or the confidence is not inside (0, 1).
    """
    if not 0 < p < 1 or not 0 < confidence < 1:
        raise AnalysisError(f"p = {p} and confidence = {confidence} must lie between 0 and 1")
