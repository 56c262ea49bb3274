"""Where the broken line nearest to latency over CPU bends: a knee, or none.

A broken line bends upward once. The fit gives the place of the bend with an interval, and a test of
whether the line bends at all.

The interval holds the places around the best one at which the score of the broken line (its
residuals against a step there) is as near 0 as flipped signs of whole clusters leave it, after
V. M. R. Muggeo, Aust. N. Z. J. Stat. 59, 2017. Residuals of a fit are too small where a cluster
has leverage, so scores are scaled up as by R. M. Bell, D. F. McCaffrey, Surv. Methodol. 28, 2002.
In simulation the percentile interval of a bootstrap and the unscaled scores cover 87 to 93%.

Clusters are trials, or blocks of windows if there are few trials. Windows of one trial are
autocorrelated, so sums over whole clusters stand for them, and the distribution of a sum of scores
comes from flipping the signs of whole clusters: the score bootstrap of P. Kline, A. Santos,
J. Econom. Methods 1, 2012, with Rademacher weights (A. C. Cameron, J. B. Gelbach, D. L. Miller,
Rev. Econ. Stat. 90, 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from perflab.statistics.comparison import CONFIDENCE, USUAL_P
from perflab.statistics.in_words import counted

ENOUGH_TRIALS = 8
WANTED_BLOCKS = 16
SMALLEST_BLOCK = 10
DRAWS = 1999


@dataclass(frozen=True)
class Clusters:
    """The cluster and the level that each window belongs to.

    ``cluster`` and ``level`` are numbers from 0, not falling, shape (windows,). Clusters that are
    trials share one level. If clusters are blocks, each trial has its own level, because the blocks
    of a trial share what makes it differ from others.
    """

    cluster: np.ndarray
    level: np.ndarray
    of_trials: bool

    @property
    def count(self) -> int:
        """Return the number of clusters."""
        return int(self.cluster[-1]) + 1

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return sums per cluster, shape (count, k), of values of shape (windows, k)."""
        total: np.ndarray = np.add.reduceat(values, _begins(self.cluster), axis=0)
        return total

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Return values of shape (windows, k) minus the means of their levels."""
        counts = np.bincount(self.level)
        means = np.add.reduceat(values, _begins(self.level), axis=0) / counts[:, None]
        centred: np.ndarray = values - means[self.level]
        return centred


def _begins(ordered: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def clusters(trial: np.ndarray) -> Clusters | None:
    """Return the clusters of windows that are ordered by trial; None if there are too few.

    ``trial`` is the number of each window's trial, 0, 1, ... without gaps and not falling.
    """
    if not len(trial):
        return None
    sizes = np.bincount(trial)
    if len(sizes) >= ENOUGH_TRIALS:
        return Clusters(trial, np.zeros_like(trial), of_trials=True)
    per_trial = math.ceil(WANTED_BLOCKS / len(sizes))
    parts = np.minimum(per_trial, np.maximum(1, sizes // SMALLEST_BLOCK))
    if parts.sum() < ENOUGH_TRIALS:
        return None
    block = np.concatenate(
        [np.arange(size) * part // size for size, part in zip(sizes, parts, strict=True)]
    )
    first = np.cumsum(parts) - parts
    return Clusters(first[trial] + block, trial, of_trials=False)


@lru_cache(maxsize=32)
def signs(count: int, draws: int = DRAWS, seed: int = 20_260_102) -> np.ndarray:
    """Return random signs, shape (draws, count), from a fixed seed."""
    drawn = np.random.default_rng(seed).integers(0, 2, (draws, count))
    flipped: np.ndarray = (1 - 2 * drawn).astype(float)
    return flipped


CANDIDATES = 120
# The least share of windows on either side of a bend.
SIDE = 0.05
LARGEST_LEVERAGE = 0.97


@dataclass(frozen=True)
class Bend:
    """The best y = level + before * x + (after - before) * max(0, x - place).

    ``p_value`` is of a straight line against an upward bend anywhere. ``squares`` and
    ``squares_line`` are the sums of squared residuals of the broken and the straight line.
    """

    place: float
    low: float
    high: float
    before: float
    after: float
    p_value: float
    squares: float
    squares_line: float
    residuals: np.ndarray


def bend(x: np.ndarray, y: np.ndarray, groups: Clusters, confidence: float) -> Bend | None:
    """Fit a broken line to x and y, shape (windows,), in the order of ``groups``.

    None if the values of x leave no room for a bend.
    """
    places = _places(x)
    line, level = groups.centred(x[:, None]), groups.centred(y[:, None])
    if places is None or (line**2).sum() < 1e-9 * ((x - x.mean()) ** 2).sum():
        return None
    slope = float((line * level).sum() / (line**2).sum())
    rest = level - slope * line
    hinges = _without(groups.centred(np.maximum(0.0, x[:, None] - places)), line)
    size = (hinges**2).sum(axis=0)
    known = size > 1e-9 * size.max()
    places, hinges, size = places[known], hinges[:, known], size[known]
    if not len(places):
        return None
    change = (hinges * rest).sum(axis=0) / size
    gain = np.where(change > 0, change**2 * size, 0.0)
    best = int(np.argmax(gain))
    residuals = rest - change * hinges
    steps = _without(_without(groups.centred((x[:, None] > places) * 1.0), line), hinges)
    lines = np.broadcast_to(line, hinges.shape)
    accepted = _accepted(_scaled(groups, residuals, steps, [lines, hinges]), confidence)
    first, last = _around(best, accepted)
    half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.0
    hinge = groups.centred(np.maximum(0.0, x - places[best])[:, None])
    before = slope + float(change[best] * _tilt(hinge, line)[0])
    return Bend(
        float(places[best]),
        float(places[first] - half),
        float(places[last] + half),
        before,
        float(before + change[best]),
        _straight_p(_scaled(groups, rest, hinges, [lines])),
        float((residuals[:, best] ** 2).sum()),
        float((rest**2).sum()),
        residuals[:, best],
    )


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
    groups: Clusters, residuals: np.ndarray, direction: np.ndarray, regressors: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores along ``direction`` per cluster and place, plain and scaled for leverage.

    With Q the orthonormal regressors of a cluster, z its direction and e its residuals, the scaled
    score z' (I - QQ')^(-1/2) e needs only the small matrix Q'Q.
    """
    columns = [np.full(direction.shape, len(direction) ** -0.5), *map(_unit, regressors)]
    products = [[groups.sums(one * two) for two in columns] for one in columns]
    inner = np.stack([np.stack(row, axis=-1) for row in products], axis=-2)
    weights, axes = np.linalg.eigh(inner)
    along_rest = np.stack([groups.sums(column * residuals) for column in columns], axis=-1)
    along_step = np.stack([groups.sums(column * direction) for column in columns], axis=-1)
    turned_rest = np.einsum("gkij,gki->gkj", axes, along_rest)
    turned_step = np.einsum("gkij,gki->gkj", axes, along_step)
    # ((1 - w)^(-1/2) - 1) / w, which is 1/2 at w = 0.
    root = np.sqrt(1 - np.clip(weights, 0.0, LARGEST_LEVERAGE))
    factor = 1 / (root * (1 + root))
    plain = groups.sums(direction * residuals)
    return plain, plain + (turned_rest * turned_step * factor).sum(axis=-1)


def _unit(columns: np.ndarray) -> np.ndarray:
    length = np.sqrt((columns**2).sum(axis=0))
    unit: np.ndarray = columns / np.where(length > 0, length, 1.0)
    return unit


def _straight_p(scores: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the p-value of no bend against an upward bend at any place."""
    observed, under_signs = _observed_and_flipped(scores)
    return (1 + int((under_signs.max(axis=1) >= observed.max() - 1e-12).sum())) / (1 + DRAWS)


def _accepted(scores: tuple[np.ndarray, np.ndarray], confidence: float) -> np.ndarray:
    observed, under_signs = _observed_and_flipped(scores)
    accepted: np.ndarray = np.abs(observed) <= np.quantile(np.abs(under_signs), confidence, axis=0)
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
    unit of the test and the interval: trials, or blocks of windows within them; it is empty if
    nothing was fitted.
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
    """Find the CPU share from which latency rises.

    The function fits a broken line to log latency against CPU, with outliers drawn in. The bend is
    a knee only if a straight line is rejected (p < 5%) and the line rises after the bend. From 8
    trials on, the unit is the trial. Below 8 the unit is the block of windows within a trial, and
    each trial has its own level: then every trial must span the knee, and the interval says nothing
    about other trials.

    There is no knee with fewer than 60 windows or 8 clusters, with CPU shares too much alike, or
    without an upward bend (latency may still rise throughout).

    ``table`` has trial_id and both columns, a row per window, in order of time within a trial.
    Windows without a latency or CPU share are left out.

    A broken line can be fitted to any curve that steepens. The bend is a threshold only if the
    broken line has a BIC lower by more than 2 than polynomials of degree 2 and 3. These polynomials
    also fit the latency of a queue.

    Sources: the module's; BIC: G. Schwarz, Ann. Stat. 6, 1978; R. E. Kass, A. E. Raftery, J. Am.
    Stat. Assoc. 90, 1995 (how large a difference is evidence).
    """
    trial, x, y = _usable(table, cpu, latency)
    groups, trials = clusters(trial), counted(len(np.unique(trial)), "trial")
    if len(x) < SMALLEST_WINDOWS or groups is None:
        reason = f"too few windows for a knee: {len(x)} in {trials}; {SMALLEST_WINDOWS} needed"
        return Knee(reason=reason)
    calmed = _calmed(x, y)
    fit = bend(x, calmed, groups, CONFIDENCE)
    if fit is None:
        reason = f"no knee can be seen in {trials}: the CPU shares are too much alike"
        return Knee(reason=reason)
    unit = trials if groups.of_trials else f"{groups.count} blocks of windows within {trials}"
    if fit.p_value >= USUAL_P:
        reason = f"no knee: no upward bend can be shown, p = {fit.p_value:.2g}"
        return Knee(unit=unit, reason=reason)
    if not fit.after > 0:
        return Knee(unit=unit, reason="no knee: latency falls with CPU throughout")
    smooth = _is_smooth(x, calmed, groups, fit)
    return Knee(fit.place, fit.low, fit.high, fit.before, fit.after, smooth, unit)


def _usable(
    table: pd.DataFrame, cpu: str, latency: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return trial numbers, CPU and log latency of usable windows, ordered by trial."""
    x = pd.to_numeric(table[cpu], errors="coerce").to_numpy(float)
    y = pd.to_numeric(table[latency], errors="coerce").to_numpy(float)
    good = (x >= 0) & (x <= MOST_CORES) & (y > 1 / LONGEST) & (y < LONGEST)
    trial = pd.factorize(table["trial_id"][good])[0]
    order = np.argsort(trial, kind="stable")
    return trial[order], x[good][order], np.log(y[good][order])


def _calmed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y`` with outliers drawn in to 3 deviations from the medians of bins of ``x``."""
    from scipy import stats

    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, max(0, len(edges) - 2))
    middles = pd.DataFrame({"x": x, "y": y}).groupby(place).median()
    usual = np.interp(x, middles["x"], middles["y"])
    reach = OUTLIER * float(stats.median_abs_deviation(y - usual, scale="normal"))
    calmed: np.ndarray = usual + np.clip(y - usual, -reach, reach) if reach > 0 else y
    return calmed


def _is_smooth(x: np.ndarray, y: np.ndarray, groups: Clusters, fit: Bend) -> bool:
    """Return whether a curve without a bend fits log latency y as well as the broken line."""
    n = _independent(fit.residuals, groups)
    floor = 1e-12 * max(fit.squares_line, 1e-300)

    def bic(squares: float, terms: int) -> float:
        return n * math.log(max(squares, floor)) + terms * math.log(n)

    smooth = min(bic(_squares(x, y, groups, degree), degree) for degree in SMOOTH_DEGREES)
    return smooth < bic(fit.squares, TERMS_OF_A_BEND) + CLEARLY


def _independent(rest: np.ndarray, groups: Clusters) -> float:
    """Return the number of independent windows that are worth these, whose noise is AR(1)."""
    within = groups.cluster[1:] == groups.cluster[:-1]
    total = float(rest @ rest)
    rho = float((rest[1:] * rest[:-1])[within].sum()) / total if total > 0 else 0.0
    rho = min(LARGEST_RHO, max(0.0, rho))
    return max(2.0, len(rest) * (1 - rho) / (1 + rho))


def _squares(x: np.ndarray, y: np.ndarray, groups: Clusters, degree: int) -> float:
    """Return the sum of squared residuals of y around a polynomial of x."""
    scale = max(float(np.abs(x).max()), 1e-300)
    terms = groups.centred(
        np.column_stack([(x / scale) ** power for power in range(1, degree + 1)])
    )
    level = groups.centred(y[:, None])[:, 0]
    rest = level - terms @ np.linalg.lstsq(terms, level, rcond=None)[0]
    return float(rest @ rest)
