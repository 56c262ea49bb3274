"""Effects of which only a bound is known: one side was cut off before its end (censored).

If every request of a baseline runs into its time-out, the baseline's response time is at least the
time-out, and the ratio of a treatment to it has only an upper bound.

The log ratio (or difference) of a block lies between two ends, ``low`` and ``high``, which are
equal where nothing was cut off. Both ends of the interval of :mod:`~perflab.statistics.comparison`
rise with the value of every block. So the upper end that the blocks' upper ends give lies above the
upper end that the unknown values would give, and covers at least as often: it is the bound. The
interval's lower end says nothing and is left open. A lower bound comes from the lower ends in the
same way. Source: the argument for monotone statistics in E. L. Lehmann, Nonparametrics, 1975,
section 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.statistics.comparison import Effect, Scale, effect_of, positive
from perflab.statistics.interim_analysis import UntilDecided


@dataclass(frozen=True)
class Ends:
    """Values by block, each between two ends; both ends are NaN in a block without a value.

    ``low`` is never positive infinite, and ``high`` never negative infinite.
    """

    low: pd.Series[Any]
    high: pd.Series[Any]

    @property
    def exact(self) -> bool:
        """Whether all values are known exactly."""
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
        return Ends(*(values.map(_log, na_action="ignore") for values in (self.low, self.high)))


def _log(value: float) -> float:
    return math.log(value) if math.isfinite(value) else value


def mean_of(values: Sequence[Ends]) -> Ends:
    """Return the ends of the mean of several values per block; NaN where one is missing."""
    return Ends(
        sum((ends.low for ends in values[1:]), values[0].low) / len(values),
        sum((ends.high for ends in values[1:]), values[0].high) / len(values),
    )


def bounded(ends: Ends, scale: Scale = "ratio", rule: UntilDecided | None = None) -> Effect:
    """Return an effect of which only a bound is known.

    The effect has no estimate. Its upper bound is ``high`` (then ``low`` is open), or its lower
    bound is ``low``; ``by_block`` holds the bounds of the blocks. With one block the effect has
    that block's bound, without a confidence.

    Raises
    ------
    AnalysisError
        No block has a value, or the blocks have no bound on the same side.
    """
    known = ends.low.notna()
    for side, of_blocks in (("at most", ends.high), ("at least", ends.low)):
        if known.any() and np.isfinite(of_blocks[known]).all():
            return _one_sided(of_blocks, side, scale, rule)
    if not known.any():
        raise AnalysisError("no block has a valid trial on both sides; there is nothing to compare")
    raise AnalysisError(
        "requests were cut off before their end on both sides, or on different sides in different "
        "blocks: nothing limits the effect; set a longer time-out"
    )


def _one_sided(
    of_blocks: pd.Series[Any], side: str, scale: Scale, rule: UntilDecided | None
) -> Effect:
    effect = effect_of(of_blocks, scale=scale, rule=rule)
    at_most = side == "at most"
    open_end = math.inf if not at_most else (0.0 if scale == "ratio" else -math.inf)
    ends = (effect.high, effect.narrow_high) if at_most else (effect.low, effect.narrow_low)
    limit, narrow = (effect.estimate, ends[1]) if effect.n == 1 else ends
    no_effect = 1.0 if scale == "ratio" else 0.0
    excludes = limit < no_effect if at_most else limit > no_effect
    return replace(
        effect,
        estimate=math.nan,
        low=open_end if at_most else limit,
        high=limit if at_most else open_end,
        narrow_low=open_end if at_most else narrow,
        narrow_high=narrow if at_most else open_end,
        # Towards the open end the effect may have any size.
        p_value=effect.p_value if excludes or math.isnan(effect.p_value) else 1.0,
        size=math.nan,
        bound="at most" if at_most else "at least",
        warnings=(*effect.warnings, f"{BOUND}: requests were cut off before their end"),
    )


BOUND = "only a bound is known"
