"""The one-sample Hodges-Lehmann estimate, the exact signed-rank interval and its p-value.

Sources: J. L. Hodges, E. L. Lehmann, Ann. Math. Stat. 34, 1963; J. W. Tukey's Walsh averages and
the inverted test as in M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods,
3rd ed. 2014, sections 3.1 to 3.3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# Tails are sums of dyadic fractions: allow for the last bits.
ROUNDING = 1e-12


def walsh_averages(x: np.ndarray) -> np.ndarray:
    """Return all (x_i + x_j) / 2 with i <= j, sorted; shape (n (n + 1) / 2,)."""
    i, j = _pairs(len(x))
    return np.sort((x[i] + x[j]) / 2)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n)


def hodges_lehmann(x: np.ndarray) -> float:
    """Return the median of the Walsh averages."""
    return float(np.median(walsh_averages(x)))


@lru_cache(maxsize=64)
def null_cdf(n: int) -> np.ndarray:
    """Return P(W+ <= w) for w = 0 ... n (n + 1) / 2 under symmetry about 0, without ties."""
    return np.cumsum(with_ranks(np.ones(1), 0, n))


def with_ranks(sums: np.ndarray, above: int, n: int) -> np.ndarray:
    """Return the distribution of a sum of ranks to which those ``above`` one up to n are added.

    A rank is in the sum with probability 1/2.
    """
    for rank in range(above + 1, n + 1):
        longer = np.zeros(len(sums) + rank)
        longer[: len(sums)] += sums / 2
        longer[rank:] += sums / 2
        sums = longer
    return sums


def interval(x: np.ndarray, confidence: float) -> tuple[float, float, float] | None:
    """Return low, high and the achieved confidence, or None where n is too small.

    The test is inverted: with k the largest w for which P(W+ <= w) <= (1 - confidence) / 2, the
    interval runs from the (k + 1)-th smallest to the (k + 1)-th largest Walsh average.
    """
    averages = walsh_averages(x)
    tail = (1 - confidence) / 2
    k, below = critical(len(x), tail)
    if k < 0:
        return None
    return float(averages[k]), float(averages[-1 - k]), 1 - 2 * below


def p_value(x: np.ndarray) -> float:
    """Return the two-sided p-value of a centre of 0, by the test that the interval inverts.

    It is at most 1 - confidence exactly where :func:`interval` excludes 0.
    """
    return min(1.0, 2 * float(null_cdf(len(x))[smaller_sum(x)]))


def smaller_sum(x: np.ndarray) -> int:
    """Return the smaller sum of signed ranks: the number of Walsh averages on one side of 0.

    Averages of 0 count on both sides (ties make the test conservative, never liberal).
    """
    averages = walsh_averages(x)
    return min(int(np.count_nonzero(averages <= 0)), int(np.count_nonzero(averages >= 0)))


def critical(n: int, tail: float) -> tuple[int, float]:
    """Return the largest w with P(W+ <= w) <= tail (-1: none), and that probability."""
    cdf = null_cdf(n)
    k = int(np.searchsorted(cdf, tail * (1 + ROUNDING), side="right")) - 1
    return k, float(cdf[k]) if k >= 0 else 0.0
