"""Where latency over CPU bends or steps upward, if it does, and how sure that is.

Windows of one trial resemble each other, so whole trials are what is left out: an estimate's
standard error is that of the estimates without each trial in turn (the jackknife; B. Efron,
R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11), and its 95% interval has
Student's t with one degree of freedom less than trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
# What lies so near to a place tells whether latency rises faster from there on.
NEAR_CORES = 0.3
FEWEST_BESIDE, FEWEST_RATIOS = 20, 6
SMOOTH_DEGREES = (2, 3)
# Larger values are no CPU share and no latency, in any unit.
MOST_CORES, LONGEST = 1e5, 1e15
LONGEST_LOG = math.log(LONGEST)
OUTLIER = 3.0
# A line may fall below 0: of the usual latency its values count as this share at least.
LEAST_USUAL = 0.01
BINS = 20
Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Knee:
    """The bend of the broken line nearest to latency over CPU, over the windows of several trials.

    ``cpu`` with its 95% interval (1.0 = one core) is NaN if there is no knee, or none can be seen,
    for the given ``reason``. ``before`` and ``after`` are slopes, in the latency's unit per core.
    With ``smooth`` a curve without a bend fits as well, so the bend is no threshold. Where a step
    fits better than both, ``cpu`` is its place, ``step`` the latency after it over that before
    (NaN: no step does), and the slopes are NaN. ``unit`` is the number of trials, in words; it is
    empty if nothing was fitted.
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
        if self.smooth:
            return f"a broken line bends at {place} CPU, but a smooth curve fits as well"
        bend = f"the nearest broken line bends at {place} CPU"
        if self.before <= self.after / 5:
            return f"{bend}: latency rises from there on"
        times = number(self.after / self.before)
        return f"{bend}: latency rises {times} times as fast from there on"


@dataclass(frozen=True)
class Windows:
    """Windows of trials, and the latency that is usual at each one's CPU; shape (windows,)."""

    trial: np.ndarray
    cpu: np.ndarray
    latency: np.ndarray
    usual: np.ndarray

    def of(self, chosen: np.ndarray) -> Windows:
        """Return the windows that are chosen."""
        parts = (self.trial, self.cpu, self.latency, self.usual)
        return Windows(*(part[chosen] for part in parts))

    def nearest(self, bent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of a level, a slope and ``bent`` that are nearest to the latency.

        ``bent`` has a row of values for each sum, shape (sums, windows). Returned are the three
        factors of each sum, shape (sums, 3), and its squared errors, relative to what is usual.
        """
        terms = np.stack(np.broadcast_arrays(1.0, self.cpu, bent), axis=-1) / self.usual[:, None]
        target = self.latency / self.usual
        across = terms.swapaxes(-1, -2)
        factors = np.linalg.pinv(across @ terms, hermitian=True) @ (across @ target)[..., None]
        errors = target - (terms @ factors)[..., 0]
        return factors[..., 0], (errors**2).sum(axis=-1)

    def ratios(self, curve: Curve) -> np.ndarray:
        """Return the logarithms of the latency over a curve's, shape (windows,)."""
        floor = LEAST_USUAL * self.usual
        logs: np.ndarray = np.log(self.latency / np.maximum(curve(self.cpu), floor))
        return logs


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

    @property
    def before(self) -> float:
        """The value right before the step."""
        return self.level + self.slope * self.place

    @property
    def times(self) -> float:
        """The value right after the step over that before it."""
        return 1 + self.jump / self.before

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the values, shape as ``x``."""
        values: np.ndarray = self.level + self.slope * x + self.jump * (x > self.place)
        return values


def knee(table: pd.DataFrame, cpu: str, latency: str = "p50_ms") -> Knee:
    """Find the CPU share from which latency rises: the bend of a broken line through latency.

    ``table`` has trial_id and both columns, a row per window. Windows without a latency or CPU
    share are left out, and outliers are drawn in. Errors are relative to the latency that is usual
    at a CPU share, since longer latencies scatter more.

    The bend is a knee only if latency bends upward at all (the interval of the curvature of a
    parabola lies above 0) and rises after the bend; it needs 60 windows and 8 trials. Latency in
    proportion to CPU has no knee. A nearest bend at the first or last place that is tried is none
    either: only 5% of the windows lie beyond that place. A broken line can be fitted to any curve
    that steepens. The bend is a threshold only if the broken line predicts the trials that are left
    out better than polynomials of degree 2 and 3 through latency and through its logarithm, which
    also fit the latency of a queue, by more than a standard error (the rule of one standard error:
    L. Breiman et al., Classification and Regression Trees, 1984). A step that rises is told instead
    where it predicts them better than all of these for certain (Student's t, one-sided, 2.5%): from
    a CPU share on latency may be another, with or without a bend.
    """
    windows = _usable(table, cpu, latency)
    count = len(np.unique(windows.trial))
    unit = counted(count, "trial")
    if len(windows.cpu) < SMALLEST_WINDOWS:
        few = f"{len(windows.cpu)} of {SMALLEST_WINDOWS} in {unit}"
        return Knee(reason=f"too few windows for a knee: {few}")
    if count < SMALLEST_TRIALS:
        return Knee(reason=f"too few trials for a knee: {count} of {SMALLEST_TRIALS}")
    first, last = map(float, np.quantile(windows.cpu, (SIDE, 1 - SIDE)))
    inner = windows.cpu[(windows.cpu >= first) & (windows.cpu <= last)]
    if len(np.unique(inner)) < FEWEST_SHARES:
        return Knee(reason=f"no knee can be seen in {unit}: the CPU shares are too much alike")
    places = np.linspace(first, last, PLACES)
    half = (places[1] - places[0]) / 2
    trials = [windows.of(windows.trial == number) for number in range(count)]
    others = _without_each(windows)

    def missed(curves: Iterable[Curve]) -> np.ndarray:
        errors = [
            # Some curves go through means, some through means of logarithms: each is centred.
            trial.ratios(curve) - rest.ratios(curve).mean()
            for trial, rest, curve in zip(trials, others, curves, strict=True)
        ]
        return np.array([(error**2).sum() for error in errors])

    lines = [broken_line(rest, places) for rest in others]
    steps = [step(rest, places) for rest in others]
    rivals = [
        missed(curve(rest, degree) for rest in others)
        for curve in (_polynomial, _exponential)
        for degree in SMOOTH_DEGREES
    ]
    smooth = min(rivals, key=np.sum)
    nearest = step(windows, places)
    gain = min(smooth, missed(lines), key=np.sum) - missed(steps)
    if nearest.jump > 0 and nearest.before > 0 and t_interval(gain)[0] > 0:
        low, high = _interval(nearest.place, [other.place for other in steps])
        return Knee(nearest.place, low - half, high + half, step=nearest.times, unit=unit)

    def curvature(of: Windows) -> float:
        parabola = Polynomial.fit(of.cpu, of.latency, 2, domain=[first, last], w=1 / of.usual)
        return float(parabola.coef[2])

    if not _interval(curvature(windows), list(map(curvature, others)))[0] > 0:
        return Knee(unit=unit, reason="no knee: no upward bend can be shown")
    line = broken_line(windows, places)
    if not line.after > 0:
        return Knee(unit=unit, reason="no knee: latency falls with CPU throughout")
    if line.place in (first, last):
        end = "first" if line.place == first else "last"
        bend = f"the nearest bend is at the {end} place tried, {100 * line.place:.0f}% CPU"
        return Knee(unit=unit, reason=f"no knee: {bend}")
    low, high = _interval(line.place, [other.place for other in lines])
    low = max(0.0, low - half)
    gain = smooth - missed(lines)
    is_smooth = bool(gain.mean() <= gain.std(ddof=1) / math.sqrt(count))
    return Knee(line.place, low, high + half, line.before, line.after, is_smooth, unit=unit)


def times_as_steep(
    table: pd.DataFrame, cpu: str, place: float, latency: str = "p50_ms"
) -> tuple[float, float, float]:
    """Return how many times as steep latency rises just beyond a CPU share as just below it.

    It is the ratio of the slopes of the broken line that bends there, through the windows within
    0.3 cores of it: what latency does far away does not count. Its 95% interval follows, by the
    jackknife of its logarithm. All are NaN where latency does not rise on both sides, where fewer
    than 20 windows lie on a side, also without a trial, or of fewer than 6 trials. ``table`` is as
    in :func:`knee`, and the latency is the usual one: outliers are drawn in.
    """
    windows = _usable(table, cpu, latency)
    windows = windows.of(np.abs(windows.cpu - place) <= NEAR_CORES)

    def log_ratio(of: Windows) -> float:
        beyond = int((of.cpu > place).sum())
        line = broken_line(of, np.array([place]))
        rises = min(line.before, line.after) > 0
        enough = min(beyond, len(of.cpu) - beyond) >= FEWEST_BESIDE
        return math.log(line.after / line.before) if rises and enough else math.nan

    if not len(windows.cpu):
        return math.nan, math.nan, math.nan
    others = _without_each(windows)
    found, without = log_ratio(windows), list(map(log_ratio, others))
    if len(others) < FEWEST_RATIOS or not all(map(math.isfinite, [found, *without])):
        return math.nan, math.nan, math.nan
    low, high = map(math.exp, _interval(found, without))
    return math.exp(found), low, high


def broken_line(windows: Windows, places: np.ndarray) -> BrokenLine:
    """Return the broken line nearest to the latency that bends upward at one of ``places``.

    Where none bends upward, the nearest that bends downward is returned.
    """
    factors, errors = windows.nearest(np.maximum(0.0, windows.cpu - places[:, None]))
    bends_upward = factors[:, 2] > 0
    best = np.argmin(np.where(bends_upward | ~bends_upward.any(), errors, np.inf))
    level, before, change = map(float, factors[best])
    return BrokenLine(float(places[best]), level, before, before + change)


def step(windows: Windows, places: np.ndarray) -> Step:
    """Return the step at one of ``places``, upward or downward, that is nearest to the latency."""
    factors, errors = windows.nearest(windows.cpu > places[:, None])
    best = np.argmin(errors)
    return Step(float(places[best]), *map(float, factors[best]))


def _polynomial(windows: Windows, degree: int) -> Curve:
    return Polynomial.fit(windows.cpu, windows.latency, degree, w=1 / windows.usual)


def _exponential(windows: Windows, degree: int) -> Curve:
    logs = Polynomial.fit(windows.cpu, np.log(windows.latency), degree)
    return lambda x: np.exp(np.minimum(logs(x), LONGEST_LOG))


def _without_each(windows: Windows) -> list[Windows]:
    """Return the windows without each trial in turn."""
    return [windows.of(windows.trial != number) for number in np.unique(windows.trial)]


def _interval(estimate: float, without: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of an estimate, from those without each trial in turn."""
    from scipy import special

    n = len(without)
    error = math.sqrt((n - 1) * float(np.var(without)))
    reach = float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    return estimate - reach, estimate + reach


def _usable(table: pd.DataFrame, cpu: str, latency: str) -> Windows:
    """Return the windows that have a latency and a CPU share; outliers are drawn in."""
    from scipy import stats

    x = pd.to_numeric(table[cpu], errors="coerce").to_numpy(float)
    y = pd.to_numeric(table[latency], errors="coerce").to_numpy(float)
    good = (x >= 0) & (x <= MOST_CORES) & (y > 1 / LONGEST) & (y < LONGEST)
    trial = pd.factorize(table["trial_id"][good])[0]
    x, logs = x[good], np.log(y[good])
    if not len(x):
        return Windows(trial, x, logs, logs)
    usual = _usual(x, logs)
    reach = OUTLIER * float(stats.median_abs_deviation(logs - usual, scale="normal"))
    if reach > 0:
        logs = usual + np.clip(logs - usual, -reach, reach)
    return Windows(trial, x, np.exp(logs), np.exp(usual))


def _usual(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the medians of bins of ``x``, interpolated."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, max(0, len(edges) - 2))
    middles = pd.DataFrame({"x": x, "y": y}).groupby(place).median()
    usual: np.ndarray = np.interp(x, middles["x"], middles["y"])
    return usual
