"""Comparing two treatments: an effect with its interval, from trials paired within blocks.

Of some effects only a bound is known, because requests of one side were cut off before their end.
If every request of a baseline runs into its time-out, the baseline's response time is at least the
time-out, and the ratio of a treatment to it has only an upper bound. The log ratio (or difference)
of a block then lies between two ends, which are equal where nothing was cut off. Both ends of an
interval rise with the value of every block. So the upper end that the blocks' upper ends give lies
above the upper end that the unknown values would give, and covers at least as often: it is the
bound. The interval's lower end says nothing and is left open. A lower bound comes from the lower
ends in the same way. Source: the argument for monotone statistics in E. L. Lehmann, Nonparametrics,
1975, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.statistics import interim_analysis
from perflab.statistics.block_ends import Ends
from perflab.statistics.in_words import counted
from perflab.statistics.interim_analysis import LooksTaken, UntilDecided
from perflab.statistics.mean_intervals import (
    CONFIDENCE,
    NO_DISTANCE,
    SMALLEST_SIGNED_RANK,
    MeanInterval,
    mean_interval,
    mean_p,
)

# A level is a value as it is; a share is what one difference is of another.
Scale = Literal["ratio", "difference", "level", "share"]
SizeBound = Literal["", "at most", "at least"]
# Of the interval with the same error on each side alone: 90%.
NARROWER = 1 - 2 * (1 - CONFIDENCE)
NO_SPREAD = (
    "all blocks give the same effect, which hides the noise: 6 blocks would give an interval, or a "
    "source with more digits"
)
NOTHING_TO_COMPARE = "no block has a valid trial on both sides; there is nothing to compare"
USUAL_P = 0.05


class NothingLimits(AnalysisError):
    """Bounds of both sides of a comparison leave its effect open."""


@dataclass(frozen=True)
class Effect:
    """A ratio of two treatments, or their difference in a unit, with its interval.

    ``confidence`` is the achieved one (signed ranks are discrete), and ``n`` the number of blocks
    compared. Where blocks share a start of the services, each start counts once: ``n`` is the
    number of starts, and ``of_blocks`` that of their blocks. ``p_value`` is of the test that the
    interval inverts: it is at most 0.05 exactly where the interval excludes "no effect". ``low``,
    ``high`` and ``p_value`` are NaN with fewer than 2 blocks. ``by_block`` holds the log ratios of
    the blocks (or starts), or their differences.
    ``narrow_low`` and ``narrow_high`` are the ends of the 90% interval (two one-sided 5% tests).

    If ``bound`` is "at most" or "at least", only a bound is known, ``high`` or ``low``, and there
    is no estimate. ``looks`` are the interim analyses of a run whose blocks were added until all
    was decided: its intervals and p-value hold whenever it stopped
    (:mod:`perflab.statistics.interim_analysis`), and are NaN with too few blocks.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    p_value: float
    by_block: tuple[float, ...] = ()
    narrow_low: float = math.nan
    narrow_high: float = math.nan
    bound: SizeBound = ""
    looks: LooksTaken | None = None
    blocks: Blocks | None = field(default=None, repr=False, compare=False)
    of_blocks: int = 0

    @property
    def blocks_per_unit(self) -> int:
        """The number of blocks that count once: those that share a start, or 1."""
        return math.ceil(self.of_blocks / self.n) if self.of_blocks else 1

    @property
    def n_text(self) -> str:
        """``8``, or ``4 starts of 16 blocks``."""
        return self.n_words if self.of_blocks else str(self.n)

    @property
    def n_words(self) -> str:
        """``8 blocks``, or ``4 starts of 16 blocks``."""
        if not self.of_blocks:
            return counted(self.n, "block")
        return f"{counted(self.n, 'start')} of {counted(self.of_blocks, 'block')}"

    @property
    def is_exact(self) -> bool:
        """Whether the values of the blocks are known exactly."""
        return self.blocks is None or self.blocks.exact

    @property
    def limit(self) -> float:
        """Return the bound of an effect; NaN if the effect has an estimate."""
        return {"at most": self.high, "at least": self.low}.get(self.bound, math.nan)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted over a family (false discovery rate); NaNs are ignored.

    Source: Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57, 1995.
    """
    # scipy.stats has this too, and takes longer to import than all else of a verdict together.
    p = pd.Series(p_values, dtype=float)
    known = p.dropna().sort_values(ascending=False)
    ranks = np.arange(len(known), 0, -1)
    adjusted = (known * len(known) / ranks).cummin().clip(upper=1.0)
    return [float(value) for value in adjusted.reindex(p.index)]


def effect_of(
    by_block: pd.Series[Any], scale: Scale = "ratio", rule: UntilDecided | None = None
) -> Effect:
    """Return the effect of log ratios by block that are known exactly; see :func:`effect_within`.

    NaN stands for a block where a side is missing.
    """
    return effect_within(Ends(by_block, by_block), scale, rule)


def effect_within(ends: Ends, scale: Scale = "ratio", rule: UntilDecided | None = None) -> Effect:
    """Return the effect of log ratios by block, each of which lies between two ends.

    From 6 blocks on, the effect is the Hodges-Lehmann estimate with the interval that inverts the
    exact signed-rank test, and that test's p-value (:mod:`perflab.statistics.signed_rank`). Below
    6 it is the mean with a t interval and the t test. The unit is the trial, not the request. The
    estimate is of the measured values; the interval runs from the lower end of the lower ends'
    interval to the upper end of the upper ends'.

    With ``scale`` "difference" the blocks hold plain differences, and so does the effect. With the
    ``rule`` of a run whose blocks were added until all was decided, there is an entry for every
    block so far. Blocks after the last look do not count yet, and the effect holds at every look.
    Where no measured value is known, or nothing limits it on one side, the effect is a bound
    (:func:`bounded`).

    AnalysisError where no block has a value, or nothing limits the blocks on the same side.
    """
    if not ends.limited:
        return bounded(ends, scale, rule)
    looks = None
    if rule is not None:
        judged, looks = interim_analysis.at_last_look(ends.measured, rule)
        ends = ends.at(judged.index)
    ends = ends.at(ends.low.dropna().index)
    low, measured, high = (
        values.to_numpy(float) for values in (ends.low, ends.measured, ends.high)
    )
    blocks = Blocks(low, measured, high, float(np.max(np.asarray(ends.step), initial=0.0)), looks)
    return effect_from(blocks, scale)


def effect_from(blocks: Blocks, scale: Scale) -> Effect:
    """Return the effect of blocks whose values have two ends; see :func:`effect_within`."""
    x, looks = blocks.measured, blocks.looks
    back: Callable[[float], float] = math.exp if scale == "ratio" else float
    if not len(x):
        raise AnalysisError(NOTHING_TO_COMPARE)
    if len(x) == 1:
        ratio, nan, by_block = back(x[0]), math.nan, (float(x[0]),)
        return Effect(ratio, nan, nan, nan, 1, nan, by_block, looks=looks, blocks=blocks)
    wide, narrow = (blocks.interval(level) for level in (CONFIDENCE, NARROWER))
    return Effect(
        back(wide.estimate),
        back(wide.low),
        back(wide.high),
        wide.confidence,
        len(x),
        blocks.p_value(0.0),
        tuple(map(float, x)),
        back(narrow.low),
        back(narrow.high),
        looks=looks,
        blocks=blocks,
    )


@dataclass(frozen=True, eq=False)
class Blocks:
    """The values of the compared blocks, each measured one between its two ends.

    ``resolution`` is the largest distance between values that their sources can tell apart.
    """

    low: np.ndarray
    measured: np.ndarray
    high: np.ndarray
    resolution: float = 0.0
    looks: LooksTaken | None = None

    @property
    def exact(self) -> bool:
        """Whether all values are known exactly."""
        return bool(np.array_equal(self.low, self.high))

    @property
    def has_no_spread(self) -> bool:
        """Whether so few blocks are so equal that nothing can be said of their noise."""
        few = self.looks is None and len(self.measured) < SMALLEST_SIGNED_RANK
        return few and max(float(np.ptp(self.measured)), self.resolution) < NO_DISTANCE

    def interval(self, confidence: float) -> MeanInterval:
        """Return the estimate of the measured values, with the interval of all that may be true.

        Below 6 blocks their standard deviation is taken as the resolution at least.
        """
        of_measured = mean_interval(self.measured, confidence, self.looks, self.resolution)
        if self.exact:
            return of_measured
        low, high = (
            mean_interval(values, confidence, self.looks, self.resolution)
            for values in (self.low, self.high)
        )
        return replace(of_measured, low=low.low, high=high.high)

    def p_value(self, centre: float) -> float:
        """Return the p-value of an effect that is exactly ``centre``: 1 if it may be the truth."""
        of_low = mean_p(self.low - centre, self.looks, self.resolution)
        if self.exact:
            return of_low
        # By the estimate of the interval: a mean can lie elsewhere.
        low, high = (
            mean_interval(values, CONFIDENCE, self.looks, self.resolution).estimate
            for values in (self.low, self.high)
        )
        if low < centre < high:
            return 1.0
        return max(of_low, mean_p(self.high - centre, self.looks, self.resolution))


def bounded(ends: Ends, scale: Scale = "ratio", rule: UntilDecided | None = None) -> Effect:
    """Return an effect of which only a bound is known.

    The effect has no estimate. Its upper bound is ``high`` (then ``low`` is open), or its lower
    bound is ``low``; ``by_block`` holds the bounds of the blocks. With one block the effect has
    that block's bound, without a confidence.

    AnalysisError where no block has a value, or the blocks have no bound on the same side.
    """
    known = ends.low.notna()
    for side, of_blocks in (("at most", ends.high), ("at least", ends.low)):
        if known.any() and np.isfinite(of_blocks[known]).all():
            return _one_sided(of_blocks, side, scale, rule)
    if not known.any():
        raise AnalysisError(NOTHING_TO_COMPARE)
    raise NothingLimits(
        "only bounds are known on both sides, or on different sides in different blocks: nothing "
        "limits the effect"
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
        # Towards the open end the effect may be any.
        p_value=effect.p_value if excludes or math.isnan(effect.p_value) else 1.0,
        bound="at most" if at_most else "at least",
    )
