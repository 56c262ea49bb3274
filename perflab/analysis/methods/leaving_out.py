"""Intervals by leaving out one unit after the other (J. W. Tukey, Ann. Math. Stat. 29, 1958)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Interval:
    """A value with its interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @classmethod
    def missing(cls) -> Interval:
        """Return an interval of NaNs."""
        return cls(math.nan, math.nan, math.nan)

    def exp(self) -> Interval:
        """Return the interval of the exponential."""
        return Interval(*(math.exp(min(each, LARGEST_LOG)) for each in self._parts()))

    def at_least(self, floor: float) -> Interval:
        """Return the interval without what lies below ``floor``; NaNs stay."""
        return Interval(*(floor if each < floor else each for each in self._parts()))

    def text(self, form: str = "{:.3g}") -> str:
        """Return ``value [low, high]``, or the value and that it has no interval."""
        if not math.isfinite(self.value):
            return "unknown"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{form.format(self.value)} (no interval)"
        value, low, high = (form.format(each) for each in self._parts())
        return f"{value} [{low}, {high}]"

    def _parts(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high


def group_means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the mean of each group 0, 1, ..., shape (groups,)."""
    means: np.ndarray = np.bincount(group, weights=values) / np.bincount(group)
    return means


def left_out_weights(unit: np.ndarray) -> np.ndarray:
    """Return weights, shape (1 + units, rows): everything, then without each unit in turn."""
    count = int(unit.max()) + 1
    without = (np.arange(count)[:, None] != unit).astype(float)
    return np.vstack([np.ones(len(unit)), without])


def jackknife(values: np.ndarray, freedom: int, confidence: float) -> list[Interval]:
    """Return Student's intervals of statistics from their leave-one-out values.

    Parameters
    ----------
    values : array, shape (1 + units, statistics)
        First row: from everything; then without each unit. A NaN gives no interval.
    freedom : int
        Degrees of freedom; below 1 there is no interval.
    """
    whole, without = values[0], values[1:]
    units = len(without)
    if freedom < 1 or units < 2:
        return [Interval(float(value), math.nan, math.nan) for value in whole]
    squares = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    margin = float(stats.t.ppf((1 + confidence) / 2, freedom)) * np.sqrt(
        (units - 1) / units * squares
    )
    return [
        Interval(float(value), float(value - off), float(value + off))
        for value, off in zip(whole, margin, strict=True)
    ]
