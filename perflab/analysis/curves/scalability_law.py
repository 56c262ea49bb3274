"""How throughput grows with load: the Universal Scalability Law, its peak and their intervals.

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), sigma >= 0 for contention, kappa >= 0 for
coherence: N. J. Gunther, Guerrilla Capacity Planning, 2007. It is fitted to log throughput, so that
errors are relative; N / X is linear in three coefficients that must not be negative, and each step
towards the least squares on logs is exact.

Intervals come from the delete-one-block jackknife with Student's t (J. W. Tukey, Ann. Math. Stat.
29, 1958). Over blocks, a percentile bootstrap of the peak covers 76 to 93% at 4 to 12 blocks, the
jackknife 93 to 98%: ``benchmarks/coverage.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from perflab.analysis.curves.needed import check_columns
from perflab.analysis.methods.comparison import CONFIDENCE
from perflab.analysis.methods.leaving_out import Interval, group_means, jackknife, left_out_weights
from perflab.errors import AnalysisError

SMALLEST_LOADS = 4
# Beyond this, or below its inverse, a number is no throughput, in whatever unit.
LARGEST_RATE = 1e15
ENOUGH_BLOCKS = 4
STEPS = 12
DRAWN = 60
MISFIT_P = 0.01
# Which of the three coefficients are free; the others are 0.
SUBSETS = ((0,), (0, 1), (0, 2), (0, 1, 2))
METHOD = "Universal Scalability Law on logs, jackknife over {}"


@dataclass(frozen=True)
class Scalability:
    """A fitted law and its peak.

    ``gain`` is lambda, the throughput per unit of load of an unhindered system. ``peak_load`` and
    ``peak_throughput`` have NaNs where ``supported`` is False: the peak is not within reach of the
    data, as ``reason`` says. ``curve`` holds rows (load, fitted, low, high) to draw; the band is
    NaN where there is no interval. ``n`` is the number of independent units, blocks or trials.
    """

    gain: Interval
    sigma: Interval
    kappa: Interval
    peak_load: Interval
    peak_throughput: Interval
    curve: tuple[tuple[float, float, float, float], ...]
    n: int
    trials: int
    loads: int
    supported: bool
    confidence: float
    method: str
    reason: str = ""
    warnings: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the peak in a sentence, or why there is none."""
        if not self.supported:
            return self.reason
        digits = "{:,.0f}" if self.peak_throughput.low >= 100 else "{:.3g}"
        return (
            f"throughput peaks at a load of {self.peak_load.text('{:.3g}')} with "
            f"{self.peak_throughput.text(digits)} (n = {self.n})"
        )


def scalability(
    table: pd.DataFrame,
    load: str = "load",
    throughput: str = "throughput_rps",
    confidence: float = CONFIDENCE,
) -> Scalability:
    """Fit the Universal Scalability Law to trials at several loads.

    Parameters
    ----------
    table : DataFrame
        One row per valid trial: ``load`` (users, workers, cores; positive), ``throughput`` and,
        where trials were run in blocks, ``block``. From 4 blocks on they are the unit; otherwise
        trials are, taken for independent.

    Returns
    -------
    Scalability
        Its peak is not supported with fewer than 4 distinct loads, where the interval of kappa
        reaches 0, or where the peak lies beyond the loads that were tried.

    Raises
    ------
    AnalysisError
        A column is missing, or a load is not positive.

    Source: see :mod:`perflab.analysis.curves.scalability_law`.
    """
    check_columns(table, "trials", (load, throughput))
    loads = pd.to_numeric(table[load]).to_numpy(float)
    rates = pd.to_numeric(table[throughput]).to_numpy(float)
    if (loads <= 0).any() or np.isinf(loads).any():
        raise AnalysisError(f"{load}: every load must be a positive, finite number")
    good = np.isfinite(loads) & (rates > 1 / LARGEST_RATE) & (rates < LARGEST_RATE)
    blocks = table["block"].to_numpy()[good] if "block" in table.columns else None
    left_out = int((~good).sum())
    warnings = (f"{left_out} trials without a throughput are left out",) if left_out else ()
    found = len(np.unique(loads[good]))
    if found < SMALLEST_LOADS:
        reason = f"no scalability law from {found} distinct loads: {SMALLEST_LOADS} are needed"
        return _none(reason, int(good.sum()), found, confidence, warnings)
    unit, kind, freedom = _units(blocks, int(good.sum()))
    return _fitted(loads[good], np.log(rates[good]), unit, kind, freedom, confidence, warnings)


def _units(blocks: np.ndarray | None, trials: int) -> tuple[np.ndarray, str, int]:
    """Return the unit of each trial, what it is, and the degrees of freedom of the jackknife."""
    if blocks is not None:
        unit, names = pd.factorize(blocks)
        if len(names) >= ENOUGH_BLOCKS:
            return unit, "blocks", len(names) - 1
    return np.arange(trials), "trials", trials - 3


def _fitted(
    loads: np.ndarray, logs: np.ndarray, unit: np.ndarray, kind: str, freedom: int,
    confidence: float, warnings: tuple[str, ...],
) -> Scalability:  # fmt: skip
    weights = left_out_weights(unit)
    terms = coefficients(loads, logs, weights)
    places = np.geomspace(float(loads.min()), float(loads.max()), DRAWN)
    values = np.column_stack([_described(terms), np.log(rate(terms, places))])
    every = jackknife(values, freedom, confidence)
    gain, peak_load, peak_rate = (every[k].exp() for k in (0, 3, 4))
    # Held at 0 by a bound a coefficient cannot vary: leaving out says nothing about it.
    sigma, kappa = (
        Interval(every[k].value, math.nan, math.nan)
        if (values[:, k] == 0).any()
        else every[k].at_least(0.0)
        for k in (1, 2)
    )
    band = [each.exp() for each in every[5:]]
    if kind == "trials":
        warnings = (*warnings, "fewer than 4 blocks: trials are taken for independent")
    fit = np.log(rate(terms[:1], loads))[0]
    warnings += _misfit(loads, logs - fit, unit, kind)
    reason = _why_no_peak(kappa, peak_load, float(loads.min()), float(loads.max()))
    peak = (Interval.missing(), Interval.missing()) if reason else (peak_load, peak_rate)
    curve = tuple(
        (float(place), each.value, each.low, each.high)
        for place, each in zip(places, band, strict=True)
    )
    n, distinct = int(unit.max()) + 1, len(np.unique(loads))
    return Scalability(
        gain, sigma, kappa, *peak, curve, n, len(loads), distinct, not reason, confidence,
        METHOD.format(kind), reason, warnings,
    )  # fmt: skip


def coefficients(loads: np.ndarray, logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a, b, c >= 0 of N / X = a + b (N - 1) + c N (N - 1), shape (fits, 3).

    Least squares on log X by Gauss-Newton steps; each step is a linear problem in which every
    subset of the coefficients is tried, the best without a negative one kept.

    Parameters
    ----------
    loads, logs : array, shape (trials,)
        Load and log throughput.
    weights : array, shape (fits, trials)
        Not negative; one fit per row.
    """
    basis = np.column_stack([np.ones(len(loads)), loads - 1, loads * (loads - 1)])
    size = np.abs(basis).max(axis=0)
    basis = basis / np.where(size > 0, size, 1.0)
    wanted = np.log(loads) - logs
    # Scaled by a typical value: weights stay near 1 whatever the unit.
    shift = float(np.median(wanted))
    fitted = np.broadcast_to(np.exp(wanted - shift), weights.shape)
    for _ in range(STEPS):
        step = np.clip(wanted - shift - np.log(fitted), -1.0, 1.0)
        terms = _not_negative(basis, fitted * (1 + step), weights / fitted**2)
        fitted = np.maximum(terms @ basis.T, 1e-9)
    scaled: np.ndarray = terms * math.exp(shift) / np.where(size > 0, size, 1.0)
    return scaled


def _not_negative(basis: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    inner = np.einsum("fn,ni,nj->fij", weights, basis, basis)
    outer = np.einsum("fn,ni,fn->fi", weights, basis, wanted)
    best, least = np.zeros(outer.shape), np.full(len(outer), np.inf)
    for subset in map(list, SUBSETS):
        part = inner[:, subset][:, :, subset]
        ridge = 1e-12 * np.trace(part, axis1=1, axis2=2)[:, None, None] * np.eye(len(subset))
        solved = np.linalg.solve(part + ridge, outer[:, subset][..., None])[..., 0]
        squares = -np.einsum("fi,fi->f", solved, outer[:, subset])
        better = (solved >= 0).all(axis=1) & (squares < least)
        best[better] = 0.0
        best[np.ix_(better, subset)] = solved[better]
        least[better] = squares[better]
    return best


def rate(terms: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Return X of each fit at each load, shape (fits, loads)."""
    basis = np.column_stack([np.ones(len(loads)), loads - 1, loads * (loads - 1)])
    rates: np.ndarray = loads / np.maximum(terms @ basis.T, 1e-300)
    return rates


def _described(terms: np.ndarray) -> np.ndarray:
    """Return log lambda, sigma, kappa, log peak load, log peak throughput; NaN without a peak.

    Below a load of 1 the law has a pole where kappa is large: a peak beyond it is none.
    """
    first = np.maximum(terms[:, 0], 1e-300)
    sigma, kappa = np.minimum(terms[:, 1] / first, 1e12), np.minimum(terms[:, 2] / first, 1e12)
    has_peak = (kappa > 0) & (sigma < 1)
    ratio = np.divide(1 - sigma, kappa, out=np.ones(len(terms)), where=has_peak)
    peak = np.sqrt(ratio)
    hindered = 1 + sigma * (peak - 1) + kappa * peak * (peak - 1)
    has_peak &= hindered > 0
    at_peak = np.log(peak / (first * np.where(has_peak, hindered, 1.0)))
    nothing = np.where(has_peak, 0.0, math.nan)
    return np.column_stack(
        [-np.log(first), sigma, kappa, np.log(peak) + nothing, at_peak + nothing]
    )


def _why_no_peak(kappa: Interval, peak: Interval, smallest: float, largest: float) -> str:
    """Return why the peak is refused, or an empty string."""
    out_of_reach = "no peak: it is not within reach of the data"
    if not kappa.value > 0:
        return f"{out_of_reach} (the fit finds no kappa above 0)"
    if not peak.value >= smallest:
        return f"{out_of_reach} (throughput falls from the smallest load, {smallest:g}, on)"
    if not kappa.low > 0:
        return f"{out_of_reach} (kappa {kappa.text('{:.2g}')} may be 0)"
    if not (math.isfinite(peak.low) and math.isfinite(peak.high)):
        return f"{out_of_reach} (without one unit or another, the fit has none)"
    if peak.value > largest:
        return f"{out_of_reach} (it would lie beyond the largest load, {largest:g})"
    return ""


def _misfit(loads: np.ndarray, rest: np.ndarray, unit: np.ndarray, kind: str) -> tuple[str, ...]:
    """Return a warning where the means at the loads miss the law by more than noise explains."""
    levels = 0
    if kind == "blocks":
        rest, levels = rest - group_means(rest, unit)[unit], int(unit.max())
    distinct, place = np.unique(loads, return_inverse=True)
    off = group_means(rest, place)
    noise = float(((rest - off[place]) ** 2).sum())
    freedom = (len(distinct) - 3, len(rest) - len(distinct) - levels)
    if min(freedom) < 1 or noise <= 1e-18 * len(rest):
        return ()
    missed = float((off[place] ** 2).sum())
    if stats.f.sf(missed / freedom[0] / (noise / freedom[1]), *freedom) >= MISFIT_P:
        return ()
    worst = int(np.argmax(np.abs(off)))
    return (f"the law does not fit: at load {distinct[worst]:g} it is off by {off[worst]:+.0%}",)


def _none(
    reason: str, trials: int, loads: int, confidence: float, warnings: tuple[str, ...]
) -> Scalability:
    nothing = (Interval.missing(),) * 5
    return Scalability(
        *nothing, (), 0, trials, loads, False, confidence, "none", reason, (*warnings, reason)
    )
