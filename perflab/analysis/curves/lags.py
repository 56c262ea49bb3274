"""Which comes first, latency or CPU: the lag at which they move together, over trials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy import linalg, signal

from perflab.analysis.curves.knees import LONGEST, MOST_CORES
from perflab.analysis.curves.needed import check_columns
from perflab.analysis.methods.clustering import (
    BLOCKS,
    ENOUGH_TRIALS,
    ONLY_THESE,
    SMALLEST_BLOCK,
    TRIALS,
    WANTED_BLOCKS,
    signs,
    unit,
    with_evidence,
)
from perflab.analysis.methods.comparison import CONFIDENCE, USUAL_P
from perflab.errors import AnalysisError

LARGEST_LAG = 10
# Autoregressive terms of CPU that are taken out of both series.
ORDER = 3
DRAWS, SEED = 2000, 20_260_103
REACHES = "the interval reaches the end of the lags looked at"
METHOD = "cross-correlation of prewhitened windows, bootstrap over {}"


@dataclass(frozen=True)
class Lag:
    """How much later latency moves than CPU; positive: latency follows.

    ``lag_s`` with its interval is NaN where ``supported`` is False. The interval is never
    narrower than a window: nothing finer can be told apart. ``correlation`` is that of prewhitened
    windows at the lag, ``p_value`` that of none at any lag, ``n`` the number of trials. ``unit``
    says what test and interval count: the trials, or below 8 of them the blocks of windows within
    them. Empty where nothing was fitted.
    """

    lag_s: float
    low: float
    high: float
    correlation: float
    p_value: float
    n: int
    windows: int
    supported: bool
    confidence: float
    method: str
    reason: str = ""
    warnings: tuple[str, ...] = ()
    unit: str = ""

    def text(self) -> str:
        """Return the lag in a sentence, or why there is none, with n, its unit and warnings."""
        return with_evidence(self._words(), self.unit, self.warnings, self.reason)

    def _words(self) -> str:
        if not self.supported:
            return self.reason
        interval = f"[{self.low:.2g}, {self.high:.2g}] s"
        if self.low <= 0 <= self.high:
            return f"latency and CPU move together: lag {self.lag_s:.2g} {interval}"
        first, then = ("latency", "CPU") if self.lag_s > 0 else ("CPU", "latency")
        return f"{first} follows {then} by {abs(self.lag_s):.2g} s: lag {interval}"


def lag(
    table: pd.DataFrame,
    cpu: str,
    latency: str = "p50_ms",
    width_s: float = 0.1,
    largest: int = LARGEST_LAG,
    confidence: float = CONFIDENCE,
) -> Lag:
    """Return by how much latency follows CPU within trials.

    Both series are filtered by an autoregression of CPU, fitted per trial: otherwise the
    autocorrelation of windows spreads any peak. The cross-correlations are averaged over trials,
    below 8 trials over blocks of windows within them; the peak counts where it is larger than
    flipped signs of these units make it at any lag, and its interval is from a bootstrap over
    them. A peak at the end of the lags looked at is refused: the true one may lie beyond.

    Parameters
    ----------
    table : DataFrame
        Consecutive windows of equal width per trial: trial_id and both columns.
    width_s : float
        Width of a window.
    largest : int
        Largest lag looked at, in windows.

    Raises
    ------
    AnalysisError
        A column is missing, or the width or largest lag is not positive.

    Source: G. E. P. Box, G. M. Jenkins, G. C. Reinsel, Time Series Analysis, chapter on transfer
    functions (prewhitening).
    """
    check_columns(table, "windows", ("trial_id", cpu, latency))
    if not (width_s > 0 and largest > 0):
        raise AnalysisError(f"width_s = {width_s} and largest = {largest} must be above 0")
    profiles, n, counted = _profiles(table, cpu, latency, largest)
    if len(profiles) < ENOUGH_TRIALS:
        reason = f"too few windows for a lag: {counted} usable ones in {unit(n, TRIALS, n)}"
        nothing = math.nan
        return Lag(*(nothing,) * 5, n, counted, False, confidence, "none", reason, (reason,))
    kind = TRIALS if n >= ENOUGH_TRIALS else BLOCKS
    return _peaked(profiles, n, counted, kind, width_s, confidence)


def _peaked(
    profiles: np.ndarray, n: int, counted: int, kind: str, width_s: float, confidence: float
) -> Lag:
    count, lags = profiles.shape
    middle = profiles.mean(axis=0)
    under_signs = np.abs(signs(count) @ profiles / count).max(axis=1)
    p_value = (1 + int((under_signs >= np.abs(middle).max() - 1e-12).sum())) / (
        1 + len(under_signs)
    )
    drawn = np.random.default_rng(SEED).integers(0, count, (DRAWS, count))
    weights = np.stack([np.bincount(row, minlength=count) for row in drawn]) / count
    tail = (1 - confidence) / 2
    place = float(_peaks(middle[None, :])[0])
    low, high = np.quantile(_peaks(weights @ profiles), [tail, 1 - tail])
    centre = (lags - 1) / 2
    low, high = (
        (min(low, place) - 0.5 - centre) * width_s,
        (max(high, place) + 0.5 - centre) * width_s,
    )
    at = float(middle[round(place)])
    method, counts = METHOD.format(kind), unit(count, kind, n)
    at_the_end = int(np.argmax(np.abs(middle))) in (0, lags - 1)
    if reason := _why_not(p_value, at_the_end, centre * width_s):
        nothing = (math.nan,) * 3
        return Lag(*nothing, at, p_value, n, counted, False, confidence, method, reason, (), counts)
    found = ((place - centre) * width_s, float(low), float(high))
    reaches = max(abs(low), abs(high)) >= centre * width_s
    warnings: tuple[str, ...] = (REACHES,) if reaches else ()
    warnings += () if kind == TRIALS else (ONLY_THESE,)
    return Lag(*found, at, p_value, n, counted, True, confidence, method, "", warnings, counts)


def _why_not(p_value: float, at_the_end: bool, largest_s: float) -> str:
    if p_value >= USUAL_P:
        return f"no lag can be seen: latency and CPU do not move together, p = {p_value:.2g}"
    if at_the_end:
        return (
            f"no lag can be told: latency and CPU move together most at {largest_s:g} s, the end "
            "of the lags looked at (largest)"
        )
    return ""


def _profiles(
    table: pd.DataFrame, cpu: str, latency: str, largest: int
) -> tuple[np.ndarray, int, int]:
    """Return cross-correlations, shape (clusters, 2 largest + 1), trials, and their windows."""
    found, counted = [], 0
    usable = [
        both
        for _, own in table.groupby("trial_id", sort=True)
        if (both := _whitened(own[cpu].to_numpy(float), own[latency].to_numpy(float))) is not None
    ]
    per_trial = 1 if len(usable) >= ENOUGH_TRIALS else -(-WANTED_BLOCKS // max(1, len(usable)))
    for x, y in usable:
        size = max(2 * largest + SMALLEST_BLOCK, -(-len(x) // per_trial))
        for begin in range(0, len(x) - size + 1, size):
            found.append(_profile(x, y, begin, begin + size, largest))
        counted += len(x)
    return np.array(found).reshape(len(found), 2 * largest + 1), len(usable), counted


def _whitened(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return CPU and log latency without CPU's autocorrelation; None where there is nothing."""
    x = np.where((x >= 0) & (x <= MOST_CORES), x, np.nan)
    y = np.log(np.where((y > 1 / LONGEST) & (y < LONGEST), y, np.nan))
    both = [_without_gaps(each) for each in (x, y)]
    if any(each is None for each in both):
        return None
    x, y = (each for each in both if each is not None)
    n = len(x)
    covariances = np.array([x[k:] @ x[: n - k] for k in range(ORDER + 1)]) / n
    covariances[0] *= 1 + 1e-6
    terms = linalg.solve_toeplitz(covariances[:-1], covariances[1:])
    x, y = (signal.lfilter([1, *-terms], [1], each)[ORDER:] for each in (x, y))
    if x.std() < 1e-12 or y.std() < 1e-12:
        return None
    return x / x.std(), np.clip(y / y.std(), -4, 4)


def _without_gaps(values: np.ndarray) -> np.ndarray | None:
    known = np.isfinite(values)
    if known.sum() < max(2 * SMALLEST_BLOCK, 0.8 * len(values)) or np.ptp(values[known]) < 1e-12:
        return None
    filled = np.interp(np.arange(len(values)), np.flatnonzero(known), values[known])
    centred: np.ndarray = filled - filled.mean()
    return centred


def _profile(x: np.ndarray, y: np.ndarray, begin: int, end: int, largest: int) -> np.ndarray:
    """Return the mean products of x at t and y at t + lag, for t in the block."""
    padded = np.concatenate([np.zeros(largest), y, np.zeros(largest)])
    shifted = sliding_window_view(padded, 2 * largest + 1)[begin:end]
    products: np.ndarray = x[begin:end] @ shifted / (end - begin)
    return products


def _peaks(profiles: np.ndarray) -> np.ndarray:
    """Return where each row is largest in size, between places by a parabola; shape (rows,)."""
    size = np.abs(profiles)
    top = np.argmax(size, axis=1)
    inner = np.clip(top, 1, size.shape[1] - 2)
    rows = np.arange(len(size))
    left, middle, right = (size[rows, inner + step] for step in (-1, 0, 1))
    bow = left - 2 * middle + right
    shift = np.divide(left - right, 2 * bow, out=np.zeros(len(size)), where=bow < 0)
    peaks: np.ndarray = np.where(top == inner, inner + np.clip(shift, -0.5, 0.5), top)
    return peaks
