"""The signed-rank test for runs that were looked at after every block, as recordings of old are.

At each look, from ``first`` to ``most`` blocks, the exact signed-rank test is made at one and the
same stricter level (S. J. Pocock, Biometrika 64, 1977), chosen so that all looks together err in 5%
of runs. Runs are planned with fewer looks now (:mod:`~perflab.analysis.methods.repeated_looks`,
which says what is assumed of both); what was begun by this rule is judged by it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from perflab.analysis.methods import signed_rank

# Nominal levels are sums of dyadic fractions: allow for the last bits.
ROUNDING = 1e-12
HALVINGS = 40
CLEAR = 1e-9


@lru_cache(maxsize=4096)
def error_of_all(level: float, first: int, most: int) -> float:
    """Return how often equal treatments differ at some look, each a test at ``level``.

    Parameters
    ----------
    level : float
        The two-sided level of the signed-rank test at every look.
    first, most : int
        Blocks at the first and at the last look; there is one after each block between.
    """
    alive, everything, error = np.ones(1), np.ones(1), 0.0
    for n in range(1, most + 1):
        alive, everything = _with_rank(alive, n), _with_rank(everything, n)
        if n < first:
            continue
        below = np.cumsum(everything)
        k = int(np.searchsorted(below, level / 2 * (1 + ROUNDING), side="right"))
        # The k lowest sums, and by symmetry the k highest, end the run.
        if k > 0:
            error += float(alive[:k].sum() + alive[-k:].sum())
            alive[:k] = alive[-k:] = 0.0
    return min(1.0, error)


def _with_rank(of_sums: np.ndarray, rank: int) -> np.ndarray:
    """Return the distribution of a sum of ranks with one more, which is in it with chance 1/2."""
    longer = np.zeros(len(of_sums) + rank)
    longer[: len(of_sums)] += of_sums / 2
    longer[rank:] += of_sums / 2
    return longer


@lru_cache(maxsize=256)
def level_of_one(error: float, first: int, most: int) -> float:
    """Return the largest level of each look (found by halving) at which all err so often at most.

    Rounded down, clear of the last bits: the error is never more than was asked for.
    """
    low, high = 0.0, error
    if error_of_all(high, first, most) <= error:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if error_of_all(middle, first, most) <= error:
            low = middle
        else:
            high = middle
    return low * (1 - CLEAR)


def interval(
    x: np.ndarray, confidence: float, first: int, most: int
) -> tuple[float, float, float] | None:
    """Return low, high and the achieved confidence of all looks together.

    None where this look has no interval: before the first, or where no sum of so few ranks is as
    unlikely as its level.

    Parameters
    ----------
    x : array, shape (n,)
        Log ratios or differences of the blocks so far, in any order; n is at most ``most``.
    """
    if len(x) < first:
        return None
    found = signed_rank.interval(x, 1 - level_of_one(1 - confidence, first, most))
    if found is None:
        return None
    low, high, alone = found
    return low, high, 1 - error_of_all(1 - alone, first, most)


def p_value(x: np.ndarray, first: int, most: int) -> float:
    """Return the two-sided p-value of a centre of 0, whenever the run is looked at."""
    if len(x) < first:
        return 1.0
    return error_of_all(signed_rank.p_value(x), first, most)
