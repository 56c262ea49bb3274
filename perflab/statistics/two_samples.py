"""Two samples without pairs: their shift, interval and p-value; and the interval of a share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np

from perflab.statistics.in_words import as_share
from perflab.statistics.mean_intervals import CONFIDENCE, NO_DISTANCE

EXACT_PRODUCT = 2500
# Up to so many orders of two samples are all looked at.
MOST_ORDERS = 20_000
Shift = tuple[float, float, float, float]
NO_INTERVAL = (math.nan, math.nan, math.nan)
FEWEST = 3


def shift(x: np.ndarray, y: np.ndarray, least_spread: float = 0.0) -> Shift:
    """Return how far x lies above y, with 95% low, 95% high and p-value; neither side is empty.

    It is the Hodges-Lehmann shift, with the interval that inverts the exact rank-sum test. Samples
    that are too small for that (below 4 and 4) have a t interval (:func:`wider_t`, which takes
    ``least_spread``); with one trial on a side there is no interval (NaN). Source: M. Hollander,
    D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. 2014, sections 4.1 to 4.3.
    """
    from scipy import stats

    differences = np.sort((x[:, None] - y[None, :]).ravel())
    if min(len(x), len(y)) < 2:
        return float(np.median(differences)), *NO_INTERVAL
    k = _critical(len(x), len(y))
    if k >= 0:
        low, high = float(differences[k]), float(differences[-1 - k])
        # With ties scipy's own p is asymptotic, and may be smaller than few values can show;
        # without, it is exact for samples this small.
        has_ties = len(np.unique(np.r_[x, y])) < len(x) + len(y)
        is_small = math.comb(len(x) + len(y), len(x)) <= MOST_ORDERS
        every = stats.PermutationMethod(MOST_ORDERS)
        test = stats.mannwhitneyu(x, y, method=every if has_ties and is_small else "auto")
        p = float(test.pvalue)
        return float(np.median(differences)), low, high, p
    return wider_t(x, y, least_spread)


def wider_t(x: np.ndarray, y: np.ndarray, least_spread: float = 0.0) -> Shift:
    """Return the shift of two samples of at least 2 values, 95% low, 95% high and p-value.

    The interval and p-value are those of Welch's or Student's t test, whichever interval is wider.
    A sample's standard deviation is taken as ``least_spread`` at least; they are NaN where neither
    side has any, which hides the noise. By simulation Welch's alone has 6 to 7% of false alarms at
    3 against 10 trials; Student's alone has too many where the smaller sample scatters more.
    Sources: Student, Biometrika 6, 1908; B. L. Welch, Biometrika 34, 1947.
    """
    from scipy import stats

    middle = float(x.mean() - y.mean())
    x, y = (_spread_out(values, least_spread) for values in (x, y))
    if max(x.std(ddof=1), y.std(ddof=1)) < NO_DISTANCE:
        return middle, *NO_INTERVAL
    tests = [stats.ttest_ind(x, y, equal_var=equal) for equal in (False, True)]
    intervals = [test.confidence_interval(CONFIDENCE) for test in tests]
    widths = [float(interval.high - interval.low) for interval in intervals]
    wider = int(np.argmax(widths))
    low, high = intervals[wider]
    return middle, float(low), float(high), float(tests[wider].pvalue)


def _spread_out(values: np.ndarray, least: float) -> np.ndarray:
    """Return the values, or others with the same mean whose standard deviation is ``least``."""
    if values.std(ddof=1) >= least:
        return values
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    spread_out: np.ndarray = values.mean() + least * steps / steps.std(ddof=1)
    return spread_out


@lru_cache(maxsize=64)
def _critical(n: int, m: int) -> int:
    """Return the largest u with P(U <= u) <= 2.5%, -1 where there is none."""
    from scipy import stats

    tail = (1 - CONFIDENCE) / 2
    if n * m > EXACT_PRODUCT:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return math.floor(n * m / 2 + float(stats.norm.ppf(tail)) * deviation - 0.5)
    counts = np.cumsum(_rank_sum_counts(n, m))
    cdf: np.ndarray = counts / counts[-1]
    return int(np.searchsorted(cdf, tail * (1 + 1e-12), side="right")) - 1


def _rank_sum_counts(n: int, m: int) -> np.ndarray:
    """Return the number of orders of n and m values that give each U: Gauss's binomial."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for j in range(1, n + 1):
        # Multiply by (1 - q^(m + j)), then divide by (1 - q^j).
        longer = counts.copy()
        longer[m + j :] -= counts[: max(0, len(counts) - m - j)]
        for at in range(j, len(longer)):
            longer[at] += longer[at - j]
        counts = longer
    return counts


@dataclass(frozen=True)
class Rate:
    """A share of cases with its exact interval: 4 of 4 are 100% [40%, 100%].

    Source: C. J. Clopper, E. S. Pearson, Biometrika 26, 1934.
    """

    hits: int
    n: int

    @property
    def share(self) -> float:
        """Return the share, of one case at least."""
        return self.hits / self.n

    def ends(self, error: float = 1 - CONFIDENCE) -> tuple[float, float]:
        """Return the interval that errs at most so often on both sides; (0, 1) without a case."""
        from scipy import special

        hits, misses = self.hits, self.n - self.hits
        low = float(special.betaincinv(hits, misses + 1, error / 2)) if hits else 0.0
        high = float(special.betaincinv(hits + 1, misses, 1 - error / 2)) if misses else 1.0
        return low, high

    def text(self) -> str:
        """Return ``2 of 24: 8% [1%, 27%]``."""
        if not self.n:
            return "no case"
        return f"{self.hits} of {self.n}: {as_share(self.share)} {self.bounds()}"

    def bounds(self) -> str:
        """Return ``[1%, 27%]``."""
        low, high = self.ends()
        return f"[{as_share(low)}, {as_share(high)}]"


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
    s, by the chi-squared distribution. Without the runs that did not reach their end, which held
    out longest, the spread would be too small, so with any of them there is no share.
    """
    from scipy import stats

    numbers = [np.asarray(group, dtype=float) for group in groups]
    unreached = sum(int(np.isnan(group).sum()) for group in numbers)
    known = [group[~np.isnan(group)] for group in numbers]
    logs = [np.log(group) for group in known if len(group) > 1]
    differences = [abs(a - b) for group in logs for a, b in combinations(group, 2)]
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
