"""Where latency over CPU bends or steps upward, if it does, and how sure that is.

Windows of one trial resemble each other, so whole trials are what is left out: an estimate's
standard error is that of the estimates without each trial in turn (the jackknife; B. Efron,
R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11), and its 95% interval has
Student's t with one degree of freedom less than trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.polynomial import Polynomial

from perflab.statistics.in_words import counted, number
from perflab.statistics.mean_intervals import CONFIDENCE
from perflab.statistics.quantiles import t_interval

SMALLEST_TRIALS = 8
SMALLEST_WINDOWS = 60
# The bend may lie anywhere but among this share of the windows at either end.
SIDE = 0.05
PLACES = 80
FEWEST_SHARES = 5
SMOOTH_DEGREES = (2, 3)
# Larger values are no CPU share and no latency, in any unit.
MOST_CORES, LONGEST = 1e5, 1e15
OUTLIER = 3.0
BINS = 20


@dataclass(frozen=True)
class Knee:
    """The bend of the broken line nearest to latency over CPU, over the windows of several trials.

    ``cpu`` with its 95% interval (1.0 = one core) is NaN if there is no knee, or none can be seen,
    for the given ``reason``. ``before`` and ``after`` are slopes of log latency per core. With
    ``smooth`` a curve without a bend fits as well, so the bend is no threshold. Where a step fits
    better than both, ``cpu`` is its place, ``step`` the latency after it over that before (NaN: no
    step does), and the slopes are NaN. ``unit`` is the number of trials, in words; it is empty if
    nothing was fitted.
    """

    cpu: float = math.nan
    low: float = math.nan
    high: float = math.nan
    before: float = math.nan
    after: float = math.nan
    smooth: bool = False
    step: float = math.nan
    unit: str = ""
    reason: str = ""

    @property
    def supported(self) -> bool:
        """Whether a knee was found."""
        return not self.reason

    def words(self) -> str:
        """Return the knee in words, or why there is none, without the unit."""
        if self.reason:
            return self.reason
        place = f"{100 * self.cpu:.0f}% [{100 * self.low:.0f}, {100 * self.high:.0f}]"
        if not math.isnan(self.step):
            return f"latency steps to {number(self.step)} times its value at {place} CPU"
        bend = f"the nearest broken line bends at {place} CPU"
        if self.smooth:
            return f"{bend}, but a smooth curve fits as well: latency rises gradually"
        rises = "rises" if self.before <= self.after / 5 else "rises faster"
        return f"{bend}: latency {rises} from there on"


@dataclass(frozen=True)
class BrokenLine:
    """y = level + before * x + (after - before) * max(0, x - place)."""

    place: float
    level: float
    before: float
    after: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the line's values, shape as ``x``."""
        beyond = np.maximum(0.0, x - self.place)
        values: np.ndarray = self.level + self.before * x + (self.after - self.before) * beyond
        return values


@dataclass(frozen=True)
class Step:
    """y = level + slope * x + jump from ``place`` on."""

    place: float
    level: float
    slope: float
    jump: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the values, shape as ``x``."""
        values: np.ndarray = self.level + self.slope * x + self.jump * (x > self.place)
        return values


def knee(table: pd.DataFrame, cpu: str, latency: str = "p50_ms") -> Knee:
    """Find the CPU share from which latency rises: the bend of a broken line through log latency.

    ``table`` has trial_id and both columns, a row per window. Windows without a latency or CPU
    share are left out, and outliers are drawn in.

    The bend is a knee only if latency bends upward at all (the interval of the curvature of a
    parabola lies above 0) and rises after the bend; it needs 60 windows and 8 trials. A broken line
    can be fitted to any curve that steepens. The bend is a threshold only if the broken line
    predicts the trials that are left out better than polynomials of degree 2 and 3, which also fit
    the latency of a queue, by more than a standard error (the rule of one standard error:
    L. Breiman et al., Classification and Regression Trees, 1984). A step that rises is told instead
    where it predicts them better than all of these for certain (Student's t, one-sided, 2.5%): from
    a CPU share on latency may be another, with or without a bend.
    """
    trial, x, y = _usable(table, cpu, latency)
    count = len(np.unique(trial))
    unit = counted(count, "trial")
    if len(x) < SMALLEST_WINDOWS:
        few = f"{len(x)} in {unit}; {SMALLEST_WINDOWS} needed"
        return Knee(reason=f"too few windows for a knee: {few}")
    if count < SMALLEST_TRIALS:
        return Knee(reason=f"too few trials for a knee: {count}; {SMALLEST_TRIALS} needed")
    first, last = map(float, np.quantile(x, (SIDE, 1 - SIDE)))
    if len(np.unique(x[(x >= first) & (x <= last)])) < FEWEST_SHARES:
        return Knee(reason=f"no knee can be seen in {unit}: the CPU shares are too much alike")
    kept = [trial != left_out for left_out in range(count)]

    def curvature(x: np.ndarray, y: np.ndarray) -> float:
        return float(Polynomial.fit(x, y, 2, domain=[first, last]).coef[2])

    places = np.linspace(first, last, PLACES)
    half = (places[1] - places[0]) / 2
    lines = [broken_line(x[rest], y[rest], places) for rest in kept]
    steps = [step(x[rest], y[rest], places) for rest in kept]
    smooth = [[Polynomial.fit(x[rest], y[rest], degree) for rest in kept]
              for degree in SMOOTH_DEGREES]  # fmt: skip
    missed = [*(_missed(fits, kept, x, y) for fits in smooth), _missed(lines, kept, x, y)]
    gain = min(missed, key=np.sum) - _missed(steps, kept, x, y)
    nearest = step(x, y, places)
    if nearest.jump > 0 and t_interval(gain)[0] > 0:
        low, high = _interval(nearest.place, [other.place for other in steps])
        times = math.exp(nearest.jump)
        return Knee(nearest.place, low - half, high + half, step=times, unit=unit)
    if not _interval(curvature(x, y), [curvature(x[rest], y[rest]) for rest in kept])[0] > 0:
        return Knee(unit=unit, reason="no knee: no upward bend can be shown")
    line = broken_line(x, y, places)
    if not line.after > 0:
        return Knee(unit=unit, reason="no knee: latency falls with CPU throughout")
    low, high = _interval(line.place, [other.place for other in lines])
    gain = min(missed[:-1], key=np.sum) - missed[-1]
    is_smooth = gain.mean() <= gain.std(ddof=1) / math.sqrt(count)
    return Knee(line.place, low - half, high + half, line.before, line.after, is_smooth, unit=unit)


def broken_line(x: np.ndarray, y: np.ndarray, places: np.ndarray) -> BrokenLine:
    """Return the broken line nearest to ``y`` that bends upward at one of ``places``.

    Where none bends upward, the nearest that bends downward is returned.
    """
    lines = []
    for place in places:
        terms = np.column_stack([np.ones_like(x), x, np.maximum(0.0, x - place)])
        level, before, change = np.linalg.lstsq(terms, y, rcond=None)[0]
        lines.append(BrokenLine(float(place), level, before, before + change))
    return min(lines, key=lambda line: (line.after <= line.before, ((y - line(x)) ** 2).sum()))


def step(x: np.ndarray, y: np.ndarray, places: np.ndarray) -> Step:
    """Return the step at one of ``places``, upward or downward, that is nearest to ``y``."""
    steps = []
    for place in places:
        terms = np.column_stack([np.ones_like(x), x, x > place])
        level, slope, jump = np.linalg.lstsq(terms, y, rcond=None)[0]
        steps.append(Step(float(place), level, slope, jump))
    return min(steps, key=lambda one: ((y - one(x)) ** 2).sum())


def _interval(estimate: float, without: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of an estimate, from those without each trial in turn."""
    from scipy import special

    n = len(without)
    error = math.sqrt((n - 1) * float(np.var(without)))
    reach = float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    return estimate - reach, estimate + reach


def _missed(
    fits: Sequence[Callable[[np.ndarray], np.ndarray]],
    kept: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
) -> np.ndarray:
    """Return the squared errors of each fit in the trial that it left out, shape (trials,)."""
    pairs = zip(fits, kept, strict=True)
    return np.array([((y[~rest] - fit(x[~rest])) ** 2).sum() for fit, rest in pairs])


def _usable(
    table: pd.DataFrame, cpu: str, latency: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return trial number, CPU and log latency of usable windows; outliers are drawn in."""
    x = pd.to_numeric(table[cpu], errors="coerce").to_numpy(float)
    y = pd.to_numeric(table[latency], errors="coerce").to_numpy(float)
    good = (x >= 0) & (x <= MOST_CORES) & (y > 1 / LONGEST) & (y < LONGEST)
    trial = pd.factorize(table["trial_id"][good])[0]
    x, logs = x[good], np.log(y[good])
    return trial, x, _calmed(x, logs) if len(x) else logs


def _calmed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y`` with outliers drawn in to 3 deviations from the medians of bins of ``x``."""
    from scipy import stats

    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, max(0, len(edges) - 2))
    middles = pd.DataFrame({"x": x, "y": y}).groupby(place).median()
    usual = np.interp(x, middles["x"], middles["y"])
    reach = OUTLIER * float(stats.median_abs_deviation(y - usual, scale="normal"))
    return usual + np.clip(y - usual, -reach, reach) if reach > 0 else y
