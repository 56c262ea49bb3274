"""Effects of which only a bound is known: one side was cut off before its end (censored).

Where every request of a baseline runs into its time-out, its response time is at least so much, and
a treatment's ratio to it at most so much. Such a ratio is a bound, and never a number.

Every block gives two ends, ``low`` and ``high``, between which its log ratio (or difference) lies;
they are equal where nothing was cut off. The interval and the p-value of
:mod:`~perflab.statistics.comparison` rise with the value of any block: taken of the upper
ends, the upper end of the interval lies above that of the values nobody knows, and holds at least
as often. That is the bound; the interval's other end says nothing and is left open. So it is with
the lower ends, the other way round. Source: the argument for monotone statistics in
E. L. Lehmann, Nonparametrics, 1975, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.statistics.comparison import Effect, effect_of, positive
from perflab.statistics.scales import Scale
from perflab.statistics.until_decided import UntilDecided


@dataclass(frozen=True)
class Ends:
    """Values by block, each between two ends; both are NaN where there is none.

    ``low`` is never positive infinite, and ``high`` never negative infinite.
    """

    low: pd.Series[Any]
    high: pd.Series[Any]

    @property
    def exact(self) -> bool:
        """Whether every value that there is is known."""
        return bool((self.low.isna() | (self.low == self.high)).all())

    def minus(self, other: Ends) -> Ends:
        """Return the ends of the difference."""
        return Ends(self.low - other.high, self.high - other.low)

    def logs(self, side: str) -> Ends:
        """Return the ends of the logarithm.

        Raises
        ------
        AnalysisError
            A value is not positive.
        """
        positive(self.low, side)
        return Ends(*(each.map(_log, na_action="ignore") for each in (self.low, self.high)))


def _log(value: float) -> float:
    return math.log(value) if math.isfinite(value) else value


def mean_of(parts: Sequence[Ends]) -> Ends:
    """Return the ends of the mean of several values per block; NaN where one is missing."""
    return Ends(
        sum((each.low for each in parts[1:]), parts[0].low) / len(parts),
        sum((each.high for each in parts[1:]), parts[0].high) / len(parts),
    )


def bounded(ends: Ends, scale: Scale = "ratio", rule: UntilDecided | None = None) -> Effect:
    """Return an effect of which only a bound is known.

    It has no estimate; ``high`` is what it is at most (``low`` is then open), or ``low`` what it is
    at least; ``by_block`` holds the bounds of the blocks. With one block the bound is that block's,
    and has no confidence.

    Raises
    ------
    AnalysisError
        No block is left, or in some block nothing limits the effect on the side of the others.
    """
    known = ends.low.notna()
    for side, of_blocks in (("at most", ends.high), ("at least", ends.low)):
        if known.any() and np.isfinite(of_blocks[known]).all():
            return _one_sided(of_blocks, side, scale, rule)
    if not known.any():
        raise AnalysisError("no block has a valid trial on both sides; there is nothing to compare")
    raise AnalysisError(
        "requests were cut off before their end on both sides, or on one side in one block and on "
        "the other in another: nothing limits the effect; a longer time-out would"
    )


def _one_sided(
    of_blocks: pd.Series[Any], side: str, scale: Scale, rule: UntilDecided | None
) -> Effect:
    found = effect_of(of_blocks, scale=scale, rule=rule)
    at_most = side == "at most"
    open_end = math.inf if not at_most else (0.0 if scale == "ratio" else -math.inf)
    limit, narrow = (found.high, found.narrow_high) if at_most else (found.low, found.narrow_low)
    if found.n == 1:
        limit = found.estimate
    nothing = 1.0 if scale == "ratio" else 0.0
    tells = limit < nothing if at_most else limit > nothing
    return replace(
        found,
        estimate=math.nan,
        low=open_end if at_most else limit,
        high=limit if at_most else open_end,
        narrow_low=open_end if at_most else narrow,
        narrow_high=narrow if at_most else open_end,
        # Towards the open end the effect may be any.
        p_value=found.p_value if tells or math.isnan(found.p_value) else 1.0,
        size=math.nan,
        bound="at most" if at_most else "at least",
        warnings=(*found.warnings, f"{BOUND}: requests were cut off before their end"),
    )


BOUND = "only a bound is known"
