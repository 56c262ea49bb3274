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
from perflab.statistics import interim_analysis, signed_rank
from perflab.statistics.in_words import counted
from perflab.statistics.interim_analysis import LooksTaken, UntilDecided

# A level is a value as it is; a share is what one difference is of another.
Scale = Literal["ratio", "difference", "level", "share"]
SizeBound = Literal["", "at most", "at least"]
CONFIDENCE = 0.95
# Of the interval with the same error on each side alone: 90%.
NARROWER = 1 - 2 * (1 - CONFIDENCE)
# Values that are less apart count as equal.
NO_DISTANCE = 1e-12
NO_SPREAD = (
    "all blocks give the same effect, which hides the noise: 6 blocks would give an interval, or a "
    "source with more digits"
)
# The fewest blocks for a verdict, and for the signed-rank test.
SMALLEST_N, SMALLEST_SIGNED_RANK = 3, 6
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


@dataclass(frozen=True)
class MeanInterval:
    """An estimate of a mean (mostly of log ratios), its interval and the achieved confidence."""

    estimate: float
    low: float
    high: float
    confidence: float


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
        raise AnalysisError("no block has a valid trial on both sides; there is nothing to compare")
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


def mean_interval(
    x: np.ndarray,
    confidence: float = CONFIDENCE,
    looks: LooksTaken | None = None,
    least_spread: float = 0.0,
) -> MeanInterval:
    """Return estimate and interval of at least 2 log ratios, or differences, as effect_of does.

    With ``looks`` the ends are NaN while there are too few blocks. Without them they are NaN where
    fewer than 6 blocks have no spread: a t interval takes it for ``least_spread`` at least.
    """
    from scipy import special

    if looks is not None:
        ends = interim_analysis.interval(x, confidence, looks)
        low, high, achieved = ends or (math.nan, math.nan, math.nan)
        return MeanInterval(signed_rank.hodges_lehmann(x), low, high, achieved)
    exact = signed_rank.interval(x, confidence) if len(x) >= SMALLEST_SIGNED_RANK else None
    if exact is not None:
        return MeanInterval(signed_rank.hodges_lehmann(x), *exact)
    mean = float(x.mean())
    error = _standard_error(x, least_spread)
    margin = float(special.stdtrit(len(x) - 1, (1 + confidence) / 2)) * error
    return MeanInterval(mean, mean - margin, mean + margin, confidence)


def mean_p(x: np.ndarray, looks: LooksTaken | None = None, least_spread: float = 0.0) -> float:
    """Return the p-value of "no effect" by the test that :func:`mean_interval` inverts."""
    from scipy import special

    if looks is not None:
        return interim_analysis.p_value(x, looks)
    if len(x) >= SMALLEST_SIGNED_RANK:
        return signed_rank.p_value(x)
    error = _standard_error(x, least_spread)
    return float(2 * special.stdtr(len(x) - 1, -abs(float(x.mean())) / error))


def _standard_error(x: np.ndarray, least_spread: float) -> float:
    """Return the standard error of a mean; NaN without any spread, which hides the noise."""
    spread = max(float(x.std(ddof=1)), least_spread)
    return spread / math.sqrt(len(x)) if spread >= NO_DISTANCE else math.nan


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
        raise AnalysisError("no block has a valid trial on both sides; there is nothing to compare")
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
