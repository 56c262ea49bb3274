"""The difference of two shares of requests, of which none may have failed.

Blocks without a failure do not differ among themselves, so that an interval of blocks would be
[0, 0]. What may have been missed is told by the number of requests: the exact interval of a share
(C. J. Clopper, E. S. Pearson, Biometrika 26, 1934) ends at 3.7/N where none of N failed. Two such
intervals give that of the difference by the method of variance estimates recovery (G. Y. Zou, A.
Donner, Stat. Med. 27, 2008; with Wilson's intervals it is method 10 of R. G. Newcombe, Stat. Med.
17, 1998). It takes the requests for independent. Failures come together, though, so what is told
is never narrower than the interval of the blocks either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.statistics import interim_analysis
from perflab.statistics.comparison import Blocks, Effect, effect_from
from perflab.statistics.interim_analysis import UntilDecided
from perflab.statistics.mean_intervals import MeanInterval
from perflab.statistics.two_samples import Rate

# Below this an exact p-value is not told apart from 0; so many halvings find it to four digits.
LEAST_P, HALVINGS = 1e-12, 24
NONE_OF_ONE = Rate(0, 1)


def difference_ends(new: Rate, old: Rate, error: float) -> tuple[float, float]:
    """Return the ends of the difference of two shares, of independent requests."""
    (new_low, new_high), (old_low, old_high) = new.ends(error), old.ends(error)
    below = math.hypot(new.share - new_low, old_high - old.share)
    above = math.hypot(new_high - new.share, old.share - old_low)
    difference = new.share - old.share
    return difference - below, difference + above


def difference_p(new: Rate, old: Rate, centre: float) -> float:
    """Return the p-value of a difference that is exactly ``centre``, of independent requests.

    It is the largest error whose interval still holds the centre.
    """

    def holds(error: float) -> bool:
        low, high = difference_ends(new, old, error)
        return low <= centre <= high

    if holds(1.0):
        return 1.0
    if not holds(LEAST_P):
        return LEAST_P
    held, missed = math.log(LEAST_P), 0.0
    for _ in range(HALVINGS):
        middle = (held + missed) / 2
        held, missed = (middle, missed) if holds(math.exp(middle)) else (held, middle)
    return math.exp(missed)


@dataclass(frozen=True, eq=False)
class BlocksOfShares(Blocks):
    """Differences of shares by block, with the failed of all requests of both sides."""

    new: Rate = NONE_OF_ONE
    old: Rate = NONE_OF_ONE

    @property
    def none_failed(self) -> bool:
        """Whether no request failed on either side."""
        return not self.new.hits + self.old.hits

    def interval(self, confidence: float) -> MeanInterval:
        """Return the difference of all requests with the wider ends of both intervals."""
        low, high = difference_ends(self.new, self.old, 1 - confidence)
        achieved, difference = confidence, self.new.share - self.old.share
        if not self.none_failed:
            of_blocks = super().interval(confidence)
            # Before the first look at a run that goes on until all is decided both are NaN.
            low, high = np.minimum(low, of_blocks.low), np.maximum(high, of_blocks.high)
            achieved = of_blocks.confidence
        return MeanInterval(difference, float(low), float(high), achieved)

    def p_value(self, centre: float) -> float:
        """Return the larger p-value: of the requests, or of the blocks where any failed."""
        of_requests = difference_p(self.new, self.old, centre)
        return of_requests if self.none_failed else max(of_requests, super().p_value(centre))


def difference_of_shares(
    new: pd.DataFrame, old: pd.DataFrame, rule: UntilDecided | None = None
) -> Effect:
    """Return the difference of two shares from the failed and all requests of each block.

    Both tables have the columns ``failed`` and ``requests`` and an entry for every block, with NaN
    where a block lacks the side. The estimate is the difference of the shares of all requests.

    AnalysisError where no block has both sides.
    """
    by_block = new["failed"] / new["requests"] - old["failed"] / old["requests"]
    looks = None
    if rule is not None:
        by_block, looks = interim_analysis.at_last_look(by_block, rule)
    by_block = by_block.dropna()
    x = by_block.to_numpy(float)
    sides = [side.loc[by_block.index] for side in (new, old)]
    failed = (Rate(int(side["failed"].sum()), int(side["requests"].sum())) for side in sides)
    step = max((float((1 / side["requests"]).max()) for side in sides if len(side)), default=0.0)
    if not len(x):
        return effect_from(Blocks(x, x, x), "difference")
    return effect_from(BlocksOfShares(x, x, x, step, looks, *failed), "difference")
