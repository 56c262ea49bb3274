"""How far single runs of one kind lie apart."""

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

    ``smallest_difference`` is how far two single runs of one and the same kind lie apart at most,
    in 95% of the pairs: a smaller difference is no sign of two kinds.
    """

    n: int
    mean: float
    smallest_difference: float


def scatter(values: Sequence[float]) -> Scatter:
    """Return how much runs that end at a number of failures scatter, by one number of each.

    The number of a run that never came to its end is NaN. Those runs held out longest: with any of
    them the mean is too low, and both numbers are NaN. With fewer than 3 runs there is no
    difference: two give one that is 13 times as wide as the values lie apart.

    Runs are taken as independent and normal: Student's t with n - 1 degrees of freedom times the
    standard error of a difference of two, s sqrt(2). Source: G. J. Hahn, W. Q. Meeker, Statistical
    Intervals, 1991, chapter 4.
    """
    from scipy import stats

    every = np.asarray(values, dtype=float)
    n = int(np.isfinite(every).sum())
    mean = float(every.mean()) if len(every) else math.nan
    if n < FEWEST or math.isnan(mean):
        return Scatter(n, mean, math.nan)
    spread = float(every.std(ddof=1)) * math.sqrt(2)
    return Scatter(n, mean, float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * spread)


@dataclass(frozen=True)
class Apart:
    """How often two single runs of one and the same kind lie further apart than ``ratio``.

    ``n`` runs are of ``kinds`` kinds; ``unreached`` ones did not reach their end. Of ``pairs`` of
    runs of one kind the larger number is more than ``ratio`` times the smaller in ``beyond``; pairs
    share runs, so they are told and are no sample. ``share`` is that of all pairs that could ever
    be made, with its 95% interval; NaN with too few runs, or unreached ones.
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

    ``groups`` hold a positive number of each run, by kind; NaN for runs that never came to their
    end.

    Logs of the numbers are taken as independent and normal with one spread for all kinds, s, from
    the pooled variance with as many degrees of freedom as runs beyond the first of each kind. Two
    runs then lie beyond the ratio with probability 2 (1 - Phi(log(ratio) / (s sqrt(2)))), which
    rises with s: its interval is that of s, from the chi-squared distribution. As with
    :func:`scatter`, runs that held out would make the spread too small, and there is no number.
    """
    from scipy import stats

    every = [np.asarray(own, dtype=float) for own in groups]
    unreached = sum(int(np.isnan(own).sum()) for own in every)
    known = [own[~np.isnan(own)] for own in every]
    logs = [np.log(own) for own in known if len(own) > 1]
    differences = [
        abs(a - b) for own in logs for place, a in enumerate(own) for b in own[place + 1 :]
    ]
    beyond = sum(bool(each > math.log(ratio)) for each in differences)
    freedom = sum(len(own) - 1 for own in logs)
    counted = partial(
        Apart, ratio, sum(map(len, known)), len(logs), unreached, len(differences), beyond
    )
    if freedom < FEWEST - 1 or unreached:
        return counted(math.nan, math.nan, math.nan)
    squares = sum(float(((own - own.mean()) ** 2).sum()) for own in logs)
    tails = stats.chi2.ppf([(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2], freedom)
    spreads = np.sqrt(squares / np.append(tails, freedom))
    with np.errstate(divide="ignore"):
        shares = 2 * stats.norm.sf(math.log(ratio) / (spreads * math.sqrt(2)))
    low, high, share = map(float, shares)
    return counted(share, low, high)
