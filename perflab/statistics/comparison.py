"""Comparing two treatments: an effect with its interval, from trials paired within blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.statistics import interim_analysis, signed_rank
from perflab.statistics.interim_analysis import Looked
from perflab.statistics.scales import Bound, Scale
from perflab.statistics.until_decided import UntilDecided

CONFIDENCE = 0.95
SMALLEST_SIGNED_RANK = 6
USUAL_P = 0.05


@dataclass(frozen=True)
class Effect:
    """A ratio of two treatments, or their difference in a unit, with its interval.

    ``confidence`` is the achieved one (signed ranks are discrete); ``n`` the number of blocks
    compared. ``p_value`` is that of the very test which the interval inverts: it is at most 0.05
    where the interval leaves "no effect" out, and nowhere else. ``low``, ``high`` and ``p_value``
    are NaN with fewer than 2 blocks. ``size`` is the matched-pairs rank-biserial correlation: 1
    where every block says "greater", -1 "smaller" (D. S. Kerby, Compr. Psychol. 3, 2014).
    ``by_block`` are the log ratios of the blocks, or their differences. ``narrow_low`` and
    ``narrow_high`` are the ends of the 90% interval (two one-sided 5% tests). ``warnings`` travel
    with the result. Where ``bound`` says "at
    most" or "at least" the effect is no number but a bound, ``high`` or ``low``, and has no
    estimate (:mod:`perflab.statistics.bounds`). ``looked`` says how a run was looked at
    whose blocks were added until all was decided: intervals and p-value then hold whenever it
    stopped (:mod:`perflab.statistics.interim_analysis`); those of too few blocks are NaN.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    p_value: float
    method: str
    warnings: tuple[str, ...] = ()
    size: float = math.nan
    by_block: tuple[float, ...] = ()
    narrow_low: float = math.nan
    narrow_high: float = math.nan
    bound: Bound = ""
    looked: Looked | None = None

    @property
    def limit(self) -> float:
        """Return what a bounded effect is at most, or at least; NaN of one that is a number."""
        return {"at most": self.high, "at least": self.low}.get(self.bound, math.nan)


@dataclass(frozen=True)
class MeanInterval:
    """An estimate of a mean (of log ratios, mostly) with interval and achieved confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    method: str


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted over a family (false discovery rate); NaNs stay and do not count.

    Source: Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57, 1995.
    """
    from scipy import stats

    p = np.asarray(p_values, dtype=float)
    known = np.isfinite(p)
    adjusted = np.full(len(p), math.nan)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p[known], method="bh")
    return [float(value) for value in adjusted]


def positive(series: pd.Series[Any], side: str) -> pd.Series[Any]:
    """Return the values of a side by block; refuse what has no logarithm.

    Raises
    ------
    AnalysisError
        A block occurs twice, or a value is not positive and finite.
    """
    values = pd.to_numeric(series).astype(float)
    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()][0]
        raise AnalysisError(f"{side}: block {twice} occurs more than once")
    for block, value in values.dropna().items():
        if not 0 < value < math.inf:
            raise AnalysisError(
                f"{side}: block {block} has the value {value:g}; a ratio needs positive, finite "
                "values"
            )
    return values


def effect_of(
    by_block: pd.Series[Any],
    confidence: float = CONFIDENCE,
    scale: Scale = "ratio",
    rule: UntilDecided | None = None,
) -> Effect:
    """Return the effect of log ratios by block; NaN where a side is missing.

    From 6 blocks on the Hodges-Lehmann estimate with the interval that inverts the exact
    signed-rank test, and that test's p-value (:mod:`perflab.statistics.signed_rank`); below
    that the mean with a t interval and the t test. Trials, not requests, are the unit.

    With ``scale`` "difference" the blocks hold plain differences, and so does the effect. With the
    ``rule`` of a run whose blocks were added until all was decided, ``by_block`` has an entry for
    every block so far; those after the last look do not count yet, and the effect holds at every
    look.

    Raises
    ------
    AnalysisError
        No block is left.
    """
    back: Callable[[float], float] = math.exp if scale == "ratio" else float
    looked = None
    if rule is not None:
        by_block, looked = interim_analysis.looked_at(by_block, rule)
    x = by_block.dropna().to_numpy(float)
    warnings = []
    left_out = [str(block) for block in by_block.index[by_block.isna()]]
    if left_out:
        warnings.append(f"left out for want of a side: block {', '.join(left_out)}")
    if not len(x):
        raise AnalysisError("no block has a valid trial on both sides; there is nothing to compare")
    if len(x) == 1:
        only, nothing = back(x[0]), math.nan
        warnings.append("one block: no interval")
        return Effect(
            only, nothing, nothing, nothing, 1, nothing, "single pair", tuple(warnings),
            by_block=(float(x[0]),), looked=looked,
        )  # fmt: skip
    if rule is None and len(x) < SMALLEST_SIGNED_RANK:
        warnings.append(f"below {SMALLEST_SIGNED_RANK} blocks the noise is taken for normal")
    if np.ptp(x) < 1e-12:
        warnings.append("all blocks give the same effect: the interval has no width")
    found, narrow = (mean_interval(x, each, looked) for each in (confidence, narrower(confidence)))
    return Effect(
        back(found.estimate),
        back(found.low),
        back(found.high),
        found.confidence,
        len(x),
        mean_p(x, looked),
        found.method,
        tuple(warnings),
        rank_biserial(x),
        tuple(map(float, x)),
        back(narrow.low),
        back(narrow.high),
        looked=looked,
    )


def narrower(confidence: float) -> float:
    """Return the confidence of the interval with the same error on each side alone: 95% is 90%."""
    return 1 - 2 * (1 - confidence)


def rank_biserial(x: np.ndarray) -> float:
    """Return the matched-pairs rank-biserial correlation; 0 when all differences are 0."""
    from scipy import stats

    told = x[x != 0]
    if not len(told):
        return 0.0
    ranks = stats.rankdata(np.abs(told))
    return float((ranks * np.sign(told)).sum() / ranks.sum())


def mean_interval(
    x: np.ndarray, confidence: float = CONFIDENCE, looked: Looked | None = None
) -> MeanInterval:
    """Return estimate and interval of at least 2 log ratios, or differences, as effect_of does.

    Where blocks were ``looked`` at until all was decided, its ends are NaN while there are too few.
    """
    from scipy import special

    if looked is not None:
        ends = interim_analysis.interval(x, confidence, looked)
        method = "Hodges-Lehmann, repeated signed-rank interval"
        low, high, achieved = ends or (math.nan, math.nan, math.nan)
        return MeanInterval(signed_rank.hodges_lehmann(x), low, high, achieved, method)
    found = signed_rank.interval(x, confidence) if len(x) >= SMALLEST_SIGNED_RANK else None
    if found is not None:
        method = "Hodges-Lehmann, signed-rank interval"
        return MeanInterval(signed_rank.hodges_lehmann(x), *found, method)
    mean = float(x.mean())
    margin = float(special.stdtrit(len(x) - 1, (1 + confidence) / 2)) * _standard_error(x)
    return MeanInterval(mean, mean - margin, mean + margin, confidence, "mean, t interval")


def mean_p(x: np.ndarray, looked: Looked | None = None) -> float:
    """Return the p-value of "no effect" by the test that :func:`mean_interval` inverts."""
    from scipy import special

    if looked is not None:
        return interim_analysis.p_value(x, looked)
    if len(x) >= SMALLEST_SIGNED_RANK:
        return signed_rank.p_value(x)
    mean, error = float(x.mean()), _standard_error(x)
    if not error > 0:
        return float(mean == 0)
    return float(2 * special.stdtr(len(x) - 1, -abs(mean) / error))


def _standard_error(x: np.ndarray) -> float:
    return float(x.std(ddof=1)) / math.sqrt(len(x))
