"""Comparison of two treatments on trials paired within blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from perflab.errors import AnalysisError

CONFIDENCE = 0.95
SMALLEST_FOR_RANKS = 6
EXACT_UP_TO = 16


@dataclass(frozen=True)
class Effect:
    """A ratio of two treatments with its interval.

    ``confidence`` is what the interval really achieves (signed ranks are discrete);
    ``warnings`` travel with the numbers into tables and reports.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    n: int
    p_value: float
    method: str
    warnings: tuple[str, ...] = ()


def compare(numerator: pd.Series, denominator: pd.Series) -> Effect:
    """Return the ratio numerator/denominator, paired by block.

    The estimate is the Hodges-Lehmann median of Walsh averages of the log ratios, the interval
    inverts the Wilcoxon signed-rank test (Hollander, Wolfe and Chicken, Nonparametric Statistical
    Methods, 2014, section 3.2-3.3); below 6 pairs it is Student's t on the log ratios. The p-value
    is an exact sign-flip permutation test of the mean log ratio (sampled above 16 pairs).

    Parameters
    ----------
    numerator, denominator : Series
        One positive value per block, indexed by block.

    Raises
    ------
    AnalysisError
        No block has a usable value on both sides.
    """
    return _effect(*_log_ratios(numerator, denominator))


def interaction(
    first: tuple[pd.Series, pd.Series], second: tuple[pd.Series, pd.Series]
) -> Effect:
    """Return the ratio of two ratios, paired by block: (a/b) over (c/d)."""
    one, lost_one = _log_ratios(*first)
    two, lost_two = _log_ratios(*second)
    return _effect((one - two).dropna(), lost_one | lost_two)


def _log_ratios(numerator: pd.Series, denominator: pd.Series) -> tuple[pd.Series, set[object]]:
    """Return log ratios by block, and the blocks that had to be left out."""
    sides = pd.DataFrame({"a": numerator, "b": denominator}).astype(float)
    usable = (sides > 0).all(axis=1) & np.isfinite(sides).all(axis=1)
    kept = sides[usable]
    return np.log(kept["a"]) - np.log(kept["b"]), set(sides.index[~usable])


def _effect(logs: pd.Series, lost: set[object]) -> Effect:
    values = np.sort(logs.to_numpy(float))
    n = len(values)
    if n == 0:
        raise AnalysisError("no block has a valid trial of both treatments: nothing to compare")
    warnings = [f"{len(lost)} blocks left out: one side has no usable trial"] if lost else []
    if n == 1:
        return Effect(
            float(np.exp(values[0])), 0.0, float("inf"), CONFIDENCE, 1, 1.0, "single pair",
            (*warnings, "one pair: no interval"),
        )
    if np.ptp(values) < 1e-12:
        warnings.append("all blocks gave the same ratio: the interval has no width")
    if n < SMALLEST_FOR_RANKS:
        estimate, low, high = _student(values)
        confidence, method = CONFIDENCE, "t on log ratios"
    else:
        estimate, low, high, confidence = _signed_rank(values)
        method = "Hodges-Lehmann, signed-rank interval"
    return Effect(
        float(np.exp(estimate)), float(np.exp(low)), float(np.exp(high)), confidence, n,
        sign_flip_p(values), method, tuple(warnings),
    )


def _student(values: np.ndarray) -> tuple[float, float, float]:
    mean = float(values.mean())
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return mean, mean - half, mean + half


def walsh_averages(values: np.ndarray) -> np.ndarray:
    """Return the sorted means of all pairs, each value with itself included."""
    rows, columns = np.triu_indices(len(values))
    averages: np.ndarray = np.sort((values[rows] + values[columns]) / 2)
    return averages


def _signed_rank(values: np.ndarray) -> tuple[float, float, float, float]:
    averages = walsh_averages(values)
    cut, confidence = _signed_rank_cut(len(values))
    return (
        float(np.median(averages)), float(averages[cut]), float(averages[-1 - cut]), confidence
    )


@lru_cache(maxsize=256)
def _signed_rank_cut(n: int) -> tuple[int, float]:
    """Return how many Walsh averages to drop at each end, and the confidence that leaves."""
    counts = np.ones(1)
    for rank in range(1, n + 1):
        grown = np.zeros(len(counts) + rank)
        grown[: len(counts)] += counts
        grown[rank:] += counts
        counts = grown
    below = np.cumsum(counts / 2.0**n)
    # Dropping k averages at each end leaves out P(W <= k-1) of probability on each side.
    cut = int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right"))
    outside = float(below[cut - 1]) if cut else 0.0
    return cut, 1 - 2 * outside


def sign_flip_p(values: np.ndarray) -> float:
    """Return the two-sided p-value of the mean under random signs, exact up to 16 values.

    Source: R. A. Fisher, The Design of Experiments, 1935, section 21.
    """
    n = len(values)
    if n <= EXACT_UP_TO:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    else:
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(20_000, n))
        signs[0] = 1.0
    observed = abs(values.sum())
    return float(np.mean(np.abs(signs @ values) >= observed - 1e-12))


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for a family (Benjamini and Hochberg, JRSS B 57, 1995)."""
    if not p_values:
        return []
    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")]
