"""How much single runs of one kind differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

CONFIDENCE = 0.95
FEWEST = 3


@dataclass(frozen=True)
class Scatter:
    """How much ``n`` runs of one kind scatter around their ``mean``.

    In 95% of pairs two single runs of the same kind differ by at most ``smallest_difference``: a
    smaller difference is no sign of two kinds.
    """

    n: int
    mean: float
    smallest_difference: float


def scatter(values: Sequence[float]) -> Scatter:
    """Return how much runs that end at a number of failures scatter, from one value per run.

    The value of a run that did not reach its end is NaN. Such runs held out longest, so a mean
    without them is too low: with any of them both numbers are NaN. With fewer than 3 runs
    ``smallest_difference`` is NaN: that of two runs is 13 times the distance of their values.

    The runs are assumed to be independent and normal: ``smallest_difference`` is Student's t with
    n - 1 degrees of freedom times the standard error of a difference of two, s sqrt(2). Source:
    G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, chapter 4.
    """
    from scipy import stats

    numbers = np.asarray(values, dtype=float)
    n = int(np.isfinite(numbers).sum())
    mean = float(numbers.mean()) if len(numbers) else math.nan
    if n < FEWEST or math.isnan(mean):
        return Scatter(n, mean, math.nan)
    spread = float(numbers.std(ddof=1)) * math.sqrt(2)
    return Scatter(n, mean, float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * spread)


@dataclass(frozen=True)
class Apart:
    """How often two single runs of the same kind differ by more than ``ratio``.

    ``n`` runs are of ``kinds`` kinds; ``unreached`` runs did not reach their end. In ``beyond`` of
    the ``pairs`` of runs of one kind the larger value is more than ``ratio`` times the smaller;
    pairs share runs, so they are no sample. ``share`` is the estimated share of all possible pairs,
    with its 95% interval ``low`` to ``high``; NaN with too few runs, or with unreached ones.
    """

    ratio: float
    n: int
    kinds: int
    unreached: int
    pairs: int
    beyond: int
    share: float
    low: float
    high: float


def apart(groups: Sequence[Sequence[float]], ratio: float) -> Apart:
    """Return how often single runs of one kind differ by more than ``ratio``, which is above 1.

    ``groups`` hold, by kind, a positive value of each run, or NaN for a run that did not reach its
    end.

    The logs of the values are assumed to be independent and normal with the same spread s in all
    kinds. The estimate of s is the pooled one; its degrees of freedom are the runs beyond the first
    of each kind. Two runs then differ by more than the ratio with probability
    2 (1 - Phi(log(ratio) / (s sqrt(2)))), which rises with s, so its interval follows from that of
    s, by the chi-squared distribution. As in :func:`scatter`, runs that did not reach their end
    would make the spread too small, so with any of them there is no share.
    """
    from scipy import stats

    numbers = [np.asarray(group, dtype=float) for group in groups]
    unreached = sum(int(np.isnan(group).sum()) for group in numbers)
    known = [group[~np.isnan(group)] for group in numbers]
    logs = [np.log(group) for group in known if len(group) > 1]
    differences = [
        abs(a - b) for group in logs for place, a in enumerate(group) for b in group[place + 1 :]
    ]
    beyond = sum(bool(difference > math.log(ratio)) for difference in differences)
    freedom = sum(len(group) - 1 for group in logs)
    result = partial(
        Apart, ratio, sum(map(len, known)), len(logs), unreached, len(differences), beyond
    )
    if freedom < FEWEST - 1 or unreached:
        return result(math.nan, math.nan, math.nan)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in logs)
    tails = stats.chi2.ppf([(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2], freedom)
    spreads = np.sqrt(squares / np.append(tails, freedom))
    with np.errstate(divide="ignore"):
        shares = 2 * stats.norm.sf(math.log(ratio) / (spreads * math.sqrt(2)))
    low, high, share = map(float, shares)
    return result(share, low, high)
