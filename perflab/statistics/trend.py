"""Whether values in a row rise or fall, without a model of how."""

from __future__ import annotations

from functools import cache

import numpy as np


def trend_p(values: np.ndarray) -> float:
    """Return the two-sided p-value of "any order of the values is as likely", exact without ties.

    A tie counts for neither direction, so p is too large with ties. Source: M. G. Kendall, Rank
    Correlation Methods, 1948 (the test of Mann and Kendall).
    """
    former, later = np.triu_indices(len(values), 1)
    rising = float(np.sign(values[later] - values[former]).sum())
    fewest = int((len(former) - abs(rising)) // 2)
    return min(1.0, 2 * float(_orders(len(values))[: fewest + 1].sum()))


@cache
def _orders(count: int) -> np.ndarray:
    """Return the shares of all orders of so many values that have 0, 1... pairs which fall."""
    shares = np.ones(1)
    for place in range(2, count + 1):
        # The value that is put in at a place falls behind none to all of those before.
        shares = np.convolve(shares, np.full(place, 1 / place))
    return shares


def change_over(values: np.ndarray) -> float:
    """Return the change from the first value to the last, by the median slope of all pairs.

    A single value that lies apart does not move it. Source: P. K. Sen, J. Am. Stat. Assoc. 63,
    1968.
    """
    former, later = np.triu_indices(len(values), 1)
    slopes = (values[later] - values[former]) / (later - former)
    return float(np.median(slopes)) * (len(values) - 1)
