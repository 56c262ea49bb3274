"""The mean of a series whose neighbours resemble each other, with an interval that knows it.

Rounds that follow each other within seconds share what the machine does meanwhile, also where they
hold ratios. A t interval over them would take each for a witness of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from perflab.analysis.methods.comparison import CONFIDENCE, MeanInterval
from perflab.errors import AnalysisError

FEWEST_ROUNDS = 20
LEAST_COSINES = 3


def mean_of_series(values: ArrayLike, confidence: float = CONFIDENCE) -> MeanInterval:
    """Return the mean of a series in its order, with an interval that allows for autocorrelation.

    The long-run variance is the mean square of the series' projections on the first
    0.4 n^(2/3) cosines, and the interval that of Student's t with as many degrees of freedom
    (equal-weighted cosines). With an autocorrelation of 0.5 between neighbours it covers 94% from
    20 values on; batch means of equal width cover less. A trend over the whole series widens it.

    Parameters
    ----------
    values : array_like, shape (n,)
        One per round, in the order of time.

    Raises
    ------
    AnalysisError
        There are fewer than 20 values, or one is not finite.

    Sources: U. K. Mueller, J. Econometrics 141, 2007; E. Lazarus, D. J. Lewis, J. H. Stock,
    M. W. Watson, J. Bus. Econ. Stat. 36(4), 2018 (the number of cosines). Batch means:
    B. Schmeiser, Operations Research 30(3), 1982.
    """
    x = np.asarray(values, dtype=float)
    if x.ndim != 1 or len(x) < FEWEST_ROUNDS:
        raise AnalysisError(
            f"{len(x)} rounds are too few to see how neighbours resemble each other; measure "
            f"{FEWEST_ROUNDS} at least"
        )
    if not np.isfinite(x).all():
        raise AnalysisError("a round has no value: leave it out on both sides, or measure again")
    cosines = degrees_of(len(x))
    half = float(stats.t.ppf((1 + confidence) / 2, cosines)) * standard_error(x)
    mean = float(x.mean())
    method = f"mean of {len(x)} rounds, t interval over {cosines} cosines"
    return MeanInterval(mean, mean - half, mean + half, confidence, method)


def degrees_of(n: int) -> int:
    """Return the degrees of freedom of :func:`mean_of_series` for a series of a length."""
    return max(LEAST_COSINES, int(0.4 * n ** (2 / 3)))


def standard_error(x: np.ndarray) -> float:
    """Return the standard error of the mean of a series, from its projections on cosines."""
    n, cosines = len(x), degrees_of(len(x))
    time = (np.arange(n) + 0.5) / n
    basis = math.sqrt(2 / n) * np.cos(math.pi * np.outer(np.arange(1, cosines + 1), time))
    return math.sqrt(float(np.mean((basis @ x) ** 2)) / n)
