"""The values of blocks by two ends, which are equal where nothing was cut off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError


def positive(series: pd.Series[Any], side: str) -> pd.Series[Any]:
    """Return the values of a side by block, if all have a logarithm.

    AnalysisError where a block occurs twice, or a value is not positive and finite.
    """
    values = pd.to_numeric(series).astype(float)
    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()][0]
        raise AnalysisError(f"{side}: block {twice} occurs more than once")
    for block, value in values.dropna().items():
        if not 0 < value < math.inf:
            raise AnalysisError(
                f"the {side} of block {block} is {value:g}; a ratio needs finite values above 0"
            )
    return values


@dataclass(frozen=True)
class Ends:
    """Values by block, each between two ends; all are NaN in a block without a value.

    ``low`` is never positive infinite, and ``high`` never negative infinite. Without a ``value``
    of its own the measured value is the lower end. ``step`` is the distance between values that the
    source can tell apart (0: any).
    """

    low: pd.Series[Any]
    high: pd.Series[Any]
    value: pd.Series[Any] | None = None
    step: pd.Series[Any] | float = 0.0

    @property
    def measured(self) -> pd.Series[Any]:
        """Return the measured values."""
        return self.low if self.value is None else self.value

    @property
    def limited(self) -> bool:
        """Whether every value that there is has two finite ends."""
        ends = pd.concat([self.low, self.high]).dropna()
        return bool(np.isfinite(ends).all())

    def at(self, blocks: pd.Index[Any]) -> Ends:
        """Return the values of some blocks."""
        step = self.step[blocks] if isinstance(self.step, pd.Series) else self.step
        return Ends(self.low[blocks], self.high[blocks], self.measured[blocks], step)

    def around(self, other: Ends) -> Ends:
        """Return the same measured values between ends that hold the other's too."""
        low = self.low.where(self.low <= other.low, other.low)
        high = self.high.where(self.high >= other.high, other.high)
        return Ends(low, high, self.measured, self.step)

    def where(self, is_kept: pd.Series[bool], other: Ends) -> Ends:
        """Return the ends of these blocks, and the other's where they are not kept."""
        low, high = self.low.where(is_kept, other.low), self.high.where(is_kept, other.high)
        return Ends(low, high, self.measured, self.step)

    def minus(self, other: Ends) -> Ends:
        """Return the ends of the difference."""
        difference, step = self.measured - other.measured, self.step + other.step
        return Ends(self.low - other.high, self.high - other.low, difference, step)

    def over(self, whole: Ends) -> Ends:
        """Return the ends of what this is of a ``whole``; NaN where that may not be positive."""
        is_positive = whole.low > 0
        quotients = [
            (end / of).where(is_positive)
            for end in (self.low, self.high)
            for of in (whole.low, whole.high)
        ]
        of_whole = pd.concat(quotients, axis=1)
        measured = (self.measured / whole.measured).where(is_positive)
        step = self.step / whole.measured
        return Ends(of_whole.min(axis=1), of_whole.max(axis=1), measured, step)

    def mean_by(self, groups: pd.Series[int]) -> Ends:
        """Return the means over the blocks of each group that have a value, by group."""

        def mean(values: pd.Series[Any]) -> pd.Series[Any]:
            return values.groupby(groups.reindex(values.index)).agg(lambda own: own.dropna().mean())

        step = mean(self.step) if isinstance(self.step, pd.Series) else self.step
        return Ends(mean(self.low), mean(self.high), mean(self.measured), step)

    def logs(self, side: str) -> Ends:
        """Return the ends of the logarithm.

        AnalysisError where a value cannot be positive.
        """
        positive(self.high.where(np.isfinite(self.high), self.low), side)
        low, high, measured = (
            values.map(_log, na_action="ignore") for values in (self.low, self.high, self.measured)
        )
        return Ends(low, high, measured, self.step / self.measured)


def _log(value: float) -> float:
    if value <= 0:
        return -math.inf
    return math.log(value) if math.isfinite(value) else value


def mean_of(values: Sequence[Ends]) -> Ends:
    """Return the ends of the mean of several values per block; NaN where one is missing."""
    parts = [(ends.low, ends.high, ends.measured, ends.step) for ends in values]
    return Ends(*(sum(of[1:], of[0]) / len(values) for of in zip(*parts, strict=True)))
