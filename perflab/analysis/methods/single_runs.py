"""What repeated runs say of their mean, and what one run more would say by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
FEWEST = 3


@dataclass(frozen=True)
class Scatter:
    """How much runs of one kind scatter.

    Attributes
    ----------
    n : int
        Runs that reached their end; ``unreached`` did not, and are in no number.
    mean, sd : float
        Over the runs.
    mean_low, mean_high : float
        Confidence interval for the mean.
    next_low, next_high : float
        Prediction interval: where one run more would lie. It does not shrink to nothing with more
        runs, and a published single run is one of these, not of those above.
    smallest_difference : float
        How far two single runs of one and the same kind lie apart at most, in 95% of the pairs:
        a difference between two single runs below it is no sign of two kinds.
    """

    n: int
    unreached: int
    mean: float
    sd: float
    mean_low: float
    mean_high: float
    next_low: float
    next_high: float
    smallest_difference: float

    def is_usual(self, value: float) -> bool | None:
        """Say whether one run more of the same kind could well have this value; None: unknown."""
        if math.isnan(self.next_low):
            return None
        return self.next_low <= value <= self.next_high


def scatter(values: Sequence[float], confidence: float = CONFIDENCE) -> Scatter:
    """Return what runs that end at a number of failures can tell, by one number of each.

    Parameters
    ----------
    values : sequence of float
        Users at the stop, successes until it, or another number, one of each run in any order; NaN
        for runs that never came to the number of failures.
    confidence : float
        Of all three intervals, between 0 and 1.

    Notes
    -----
    Runs are taken as independent and normal: intervals from Student's t with n - 1 degrees of
    freedom, the standard error of the next run is s sqrt(1 + 1/n) and that of a difference of two
    is s sqrt(2). Runs that held out longest are the unreached ones: with any of them mean and
    intervals are too low, and are NaN. With fewer than 3 runs there is no interval: two give one
    that is 13 times as wide as the values lie apart, and a single run has no scatter at all.
    Source: G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, chapter 4.

    Raises
    ------
    ValueError
        The confidence is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence:g} is not between 0 and 1")
    every = np.asarray(values, dtype=float)
    known = every[~np.isnan(every)]
    n, unreached = len(known), int(np.isnan(every).sum())
    unknown = [math.nan] * 5
    if n < FEWEST or unreached:
        whole = n > 0 and not unreached
        mean = float(known.mean()) if whole else math.nan
        sd = float(known.std(ddof=1)) if whole and n > 1 else math.nan
        return Scatter(n, unreached, mean, sd, *unknown)
    mean, sd = float(known.mean()), float(known.std(ddof=1))
    factor = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd
    of_mean, of_next = factor / math.sqrt(n), factor * math.sqrt(1 + 1 / n)
    return Scatter(
        n, unreached, mean, sd, mean - of_mean, mean + of_mean, mean - of_next, mean + of_next,
        factor * math.sqrt(2),
    )  # fmt: skip
