"""Where the broken line nearest to latency over CPU bends: a knee, or none.

A broken line bends upward once. The fit gives the place of the bend with an interval, and a test of
whether the line bends at all.

The interval holds the places around the best one at which the score of the broken line (its
residuals against a step there) is as near 0 as flipped signs of whole trials leave it, after
V. M. R. Muggeo, Aust. N. Z. J. Stat. 59, 2017. Residuals of a fit are too small where a trial has
leverage, so scores are scaled up as by R. M. Bell, D. F. McCaffrey, Surv. Methodol. 28, 2002. In
simulation the percentile interval of a bootstrap and the unscaled scores cover 87 to 93%.

Windows of one trial are autocorrelated, so sums over whole trials stand for them, and the
distribution of a sum of scores comes from flipping the signs of whole trials: the score bootstrap
of P. Kline, A. Santos, J. Econom. Methods 1, 2012, with Rademacher weights (A. C. Cameron, J. B.
Gelbach, D. L. Miller, Rev. Econ. Stat. 90, 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from perflab.statistics.comparison import CONFIDENCE, USUAL_P
from perflab.statistics.in_words import counted

SMALLEST_TRIALS = 8
DRAWS = 1999
SEED = 20_260_102


@dataclass(frozen=True)
class Windows:
    """Usable windows, ordered by trial: CPU ``x``, log latency ``y`` and the number of the trial.

    All have shape (windows,); ``trial`` counts from 0, without gaps.
    """

    trial: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @property
    def trials(self) -> int:
        """Return the number of trials."""
        return len(np.unique(self.trial))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return sums per trial, shape (trials, k), of values of shape (windows, k)."""
        begins = np.flatnonzero(np.diff(self.trial, prepend=-1))
        return np.add.reduceat(values, begins, axis=0)


@lru_cache(maxsize=32)
def signs(count: int) -> np.ndarray:
    """Return random signs, shape (DRAWS, count), from a fixed seed."""
    drawn = np.random.default_rng(SEED).integers(0, 2, (DRAWS, count))
    return (1 - 2 * drawn).astype(float)


CANDIDATES = 120
# The least share of windows on either side of a bend.
SIDE = 0.05
LARGEST_LEVERAGE = 0.97


@dataclass(frozen=True)
class Bend:
    """The best y = level + before * x + (after - before) * max(0, x - place).

    ``p_value`` is of a straight line against an upward bend anywhere.
    """

    place: float
    low: float
    high: float
    before: float
    after: float
    p_value: float
    residuals: np.ndarray


def bend(windows: Windows) -> Bend | None:
    """Fit a broken line; None if the CPU shares leave no room for a bend."""
    x, places = windows.x, _places(windows.x)
    if places is None:
        return None
    line, level = _centred(x[:, None]), _centred(windows.y[:, None])
    slope = float((line * level).sum() / (line**2).sum())
    rest = level - slope * line
    hinges = _without(_centred(np.maximum(0.0, x[:, None] - places)), line)
    size = (hinges**2).sum(axis=0)
    known = size > 1e-9 * size.max()
    places, hinges, size = places[known], hinges[:, known], size[known]
    if not len(places):
        return None
    change = (hinges * rest).sum(axis=0) / size
    gain = np.where(change > 0, change**2 * size, 0.0)
    best = int(np.argmax(gain))
    residuals = rest - change * hinges
    steps = _without(_without(_centred((x[:, None] > places) * 1.0), line), hinges)
    lines = np.broadcast_to(line, hinges.shape)
    accepted = _accepted(_scaled(windows, residuals, steps, [lines, hinges]))
    first, last = _around(best, accepted)
    half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.0
    hinge = _centred(np.maximum(0.0, x - places[best])[:, None])
    before = slope + float(change[best] * _tilt(hinge, line)[0])
    return Bend(
        float(places[best]),
        float(places[first] - half),
        float(places[last] + half),
        before,
        float(before + change[best]),
        _straight_p(_scaled(windows, rest, hinges, [lines])),
        residuals[:, best],
    )


def _centred(values: np.ndarray) -> np.ndarray:
    """Return values of shape (windows, k) minus their means."""
    centred: np.ndarray = values - values.mean(axis=0)
    return centred


def _places(x: np.ndarray) -> np.ndarray | None:
    ordered, edge = np.sort(x), max(3, round(SIDE * len(x)))
    if len(x) < 4 * edge or not ordered[-edge] > ordered[edge - 1]:
        return None
    return np.linspace(ordered[edge - 1], ordered[-edge], CANDIDATES + 1)[:-1]


def _without(columns: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return columns, shape (n, k), minus their part along ``direction``, (n, 1) or (n, k)."""
    remainder: np.ndarray = columns + direction * _tilt(columns, direction)
    return remainder


def _tilt(columns: np.ndarray, direction: np.ndarray) -> np.ndarray:
    size = (direction**2).sum(axis=0)
    along = (direction * columns).sum(axis=0)
    tilt: np.ndarray = -np.divide(along, size, out=np.zeros(along.shape), where=size > 0)
    return tilt


def _scaled(
    windows: Windows, residuals: np.ndarray, direction: np.ndarray, regressors: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores along ``direction`` per trial and place, plain and scaled for leverage.

    With Q the orthonormal regressors of a trial, z its direction and e its residuals, the scaled
    score z' (I - QQ')^(-1/2) e needs only the small matrix Q'Q.
    """
    columns = [np.full(direction.shape, len(direction) ** -0.5), *map(_unit, regressors)]
    products = [[windows.sums(one * two) for two in columns] for one in columns]
    inner = np.stack([np.stack(row, axis=-1) for row in products], axis=-2)
    weights, axes = np.linalg.eigh(inner)
    along_rest = np.stack([windows.sums(column * residuals) for column in columns], axis=-1)
    along_step = np.stack([windows.sums(column * direction) for column in columns], axis=-1)
    turned_rest = np.einsum("gkij,gki->gkj", axes, along_rest)
    turned_step = np.einsum("gkij,gki->gkj", axes, along_step)
    # ((1 - w)^(-1/2) - 1) / w, which is 1/2 at w = 0.
    root = np.sqrt(1 - np.clip(weights, 0.0, LARGEST_LEVERAGE))
    factor = 1 / (root * (1 + root))
    plain = windows.sums(direction * residuals)
    return plain, plain + (turned_rest * turned_step * factor).sum(axis=-1)


def _unit(columns: np.ndarray) -> np.ndarray:
    length = np.sqrt((columns**2).sum(axis=0))
    return columns / np.where(length > 0, length, 1.0)


def _straight_p(scores: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the p-value of no bend against an upward bend at any place."""
    observed, under_signs = _observed_and_flipped(scores)
    return (1 + int((under_signs.max(axis=1) >= observed.max() - 1e-12).sum())) / (1 + DRAWS)


def _accepted(scores: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    observed, under_signs = _observed_and_flipped(scores)
    accepted: np.ndarray = np.abs(observed) <= np.quantile(np.abs(under_signs), CONFIDENCE, axis=0)
    return accepted


def _observed_and_flipped(scores: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of scores over their deviation, shape (k,), and with drawn signs, (draws, k)."""
    plain, scaled = scores
    size = np.sqrt((scaled**2).sum(axis=0))
    size = np.where(size > 0, size, np.inf)
    return plain.sum(axis=0) / size, signs(len(scaled)) @ scaled / size


def _around(best: int, accepted: np.ndarray) -> tuple[int, int]:
    """Return the first and last of the adjacent accepted places around the best."""
    refused = ~accepted
    refused[best] = False
    below, above = np.flatnonzero(refused[:best]), np.flatnonzero(refused[best:])
    first = int(below[-1]) + 1 if len(below) else 0
    last = best + int(above[0]) - 1 if len(above) else len(accepted) - 1
    return first, last


SMALLEST_WINDOWS = 60
# Larger values are no CPU share and no latency, in any unit.
MOST_CORES, LONGEST = 1e5, 1e15
OUTLIER = 3.0
BINS = 20
# A polynomial has as many terms as its degree; a broken line has two slopes and a place.
SMOOTH_DEGREES = (2, 3)
TERMS_OF_A_BEND = 3
CLEARLY = 2.0
LARGEST_RHO = 0.98


@dataclass(frozen=True)
class Knee:
    """The bend of the broken line nearest to latency over CPU, over the windows of several trials.

    ``cpu`` with its 95% interval (1.0 = one core) is NaN if there is no knee, or none can be seen,
    for the given ``reason``. ``before`` and ``after`` are slopes of log latency per core. With
    ``smooth`` a curve without a bend fits as well, so the bend is no threshold. ``unit`` is the
    number of trials, in words; it is empty if nothing was fitted.
    """

    cpu: float = math.nan
    low: float = math.nan
    high: float = math.nan
    before: float = math.nan
    after: float = math.nan
    smooth: bool = False
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
        bend = f"the nearest broken line bends at {place} CPU"
        if self.smooth:
            return f"{bend}, but a smooth curve fits as well: latency rises gradually"
        rises = "rises" if self.before <= self.after / 5 else "rises faster"
        return f"{bend}: latency {rises} from there on"


def knee(table: pd.DataFrame, cpu: str, latency: str = "p50_ms") -> Knee:
    """Find the CPU share from which latency rises: the bend of a broken line through log latency.

    ``table`` has trial_id and both columns, a row per window, in order of time within a trial.
    Windows without a latency or CPU share are left out, and outliers are drawn in.

    The bend is a knee only if a straight line is rejected (p < 5%) and the line rises after the
    bend; it needs 60 windows and 8 trials. A broken line can be fitted to any curve that steepens.
    The bend is a threshold only if the broken line has a BIC lower by more than 2 than polynomials
    of degree 2 and 3, which also fit the latency of a queue.

    Sources: the module's; BIC: G. Schwarz, Ann. Stat. 6, 1978; R. E. Kass, A. E. Raftery, J. Am.
    Stat. Assoc. 90, 1995 (how large a difference is evidence).
    """
    windows = _usable(table, cpu, latency)
    n, unit = len(windows.x), counted(windows.trials, "trial")
    if n < SMALLEST_WINDOWS:
        return Knee(reason=f"too few windows for a knee: {n} in {unit}; {SMALLEST_WINDOWS} needed")
    if windows.trials < SMALLEST_TRIALS:
        return Knee(reason=f"too few trials for a knee: {windows.trials}; {SMALLEST_TRIALS} needed")
    fit = bend(windows)
    if fit is None:
        return Knee(reason=f"no knee can be seen in {unit}: the CPU shares are too much alike")
    if fit.p_value >= USUAL_P:
        reason = f"no knee: no upward bend can be shown, p = {fit.p_value:.2g}"
        return Knee(unit=unit, reason=reason)
    if not fit.after > 0:
        return Knee(unit=unit, reason="no knee: latency falls with CPU throughout")
    smooth = _is_smooth(windows, fit.residuals)
    return Knee(fit.place, fit.low, fit.high, fit.before, fit.after, smooth, unit)


def _usable(table: pd.DataFrame, cpu: str, latency: str) -> Windows:
    """Return the usable windows, with outliers of latency drawn in."""
    x = pd.to_numeric(table[cpu], errors="coerce").to_numpy(float)
    y = pd.to_numeric(table[latency], errors="coerce").to_numpy(float)
    good = (x >= 0) & (x <= MOST_CORES) & (y > 1 / LONGEST) & (y < LONGEST)
    trial = pd.factorize(table["trial_id"][good])[0]
    order = np.argsort(trial, kind="stable")
    x, logs = x[good][order], np.log(y[good][order])
    return Windows(trial[order], x, _calmed(x, logs) if len(x) else logs)


def _calmed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y`` with outliers drawn in to 3 deviations from the medians of bins of ``x``."""
    from scipy import stats

    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, max(0, len(edges) - 2))
    middles = pd.DataFrame({"x": x, "y": y}).groupby(place).median()
    usual = np.interp(x, middles["x"], middles["y"])
    reach = OUTLIER * float(stats.median_abs_deviation(y - usual, scale="normal"))
    return usual + np.clip(y - usual, -reach, reach) if reach > 0 else y


def _is_smooth(windows: Windows, residuals: np.ndarray) -> bool:
    """Return whether a curve without a bend fits log latency as well as the broken line.

    ``residuals`` are those of the broken line.
    """
    n = _independent(residuals, windows.trial)

    def bic(rest: np.ndarray, terms: int) -> float:
        return n * math.log(max(float(rest @ rest), 1e-300)) + terms * math.log(n)

    smooth = min(bic(_rest(windows, degree), degree) for degree in SMOOTH_DEGREES)
    return smooth < bic(residuals, TERMS_OF_A_BEND) + CLEARLY


def _independent(rest: np.ndarray, trial: np.ndarray) -> float:
    """Return the number of independent windows that are worth these, whose noise is AR(1)."""
    within = trial[1:] == trial[:-1]
    total = float(rest @ rest)
    rho = float((rest[1:] * rest[:-1])[within].sum()) / total if total > 0 else 0.0
    rho = min(LARGEST_RHO, max(0.0, rho))
    return max(2.0, len(rest) * (1 - rho) / (1 + rho))


def _rest(windows: Windows, degree: int) -> np.ndarray:
    """Return the residuals of log latency around a polynomial of CPU."""
    scaled = windows.x / max(float(windows.x.max()), 1e-300)
    terms = _centred(np.column_stack([scaled**power for power in range(1, degree + 1)]))
    level = _centred(windows.y)
    rest: np.ndarray = level - terms @ np.linalg.lstsq(terms, level, rcond=None)[0]
    return rest
