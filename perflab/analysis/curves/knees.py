"""Where the nearest broken line of latency over CPU bends: a knee, or none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.curves.broken_line import Bend, bend
from perflab.analysis.curves.correlation import check_columns
from perflab.analysis.methods.clustering import Clusters, clusters
from perflab.analysis.methods.comparison import CONFIDENCE, USUAL_P
from perflab.numerals import counted

SMALLEST_WINDOWS = 60
# Beyond these a value is no CPU share and no latency, in whatever unit.
MOST_CORES, LONGEST = 1e5, 1e15
OUTLIER = 3.0
BINS = 20
# A smooth curve has as many terms as its degree; a broken line has two slopes and a place.
SMOOTH_DEGREES = (2, 3)
TERMS_OF_A_BEND = 3
CLEARLY = 2.0
LARGEST_RHO = 0.98


@dataclass(frozen=True)
class Knee:
    """Where the broken line nearest to latency over CPU bends, over the windows of several trials.

    ``cpu`` with its 95% interval (1.0 = one core) is NaN where there is no knee, or the data cannot
    tell, as ``reason`` says. ``before`` and ``after`` are slopes of log latency per core.
    ``smooth`` says that a curve without a bend fits as well: the bend is then no threshold.
    ``unit`` says what test and interval count: trials, or blocks of windows within them. It is
    empty where nothing was fitted.
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
        """Whether there is a knee."""
        return not self.reason

    def words(self) -> str:
        """Return the knee in words, or why there is none, without what it rests on."""
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

    A broken line is fitted to log latency against CPU, outliers drawn in. It is a knee only where
    a straight line is refused (p < 5%) and the line bends upward to a rise. From 8 trials on trials
    are the unit. Below that blocks of windows within trials are, each trial with a level of its
    own: trials then have to span the knee themselves, and the interval says nothing of others.

    There is no knee with fewer than 60 windows or 8 clusters, without room on the CPU axis, or
    where no upward bend is shown (latency may still rise throughout).

    Parameters
    ----------
    table : DataFrame
        trial_id and both columns, a row per window, in the order they happened within a trial.
        Windows without a latency or CPU share are left out.

    Raises
    ------
    AnalysisError
        A column is missing.

    Notes
    -----
    A broken line is near enough to any curve that steepens, so that a bend can be fitted to all of
    them. A threshold is said only where the broken line fits better than polynomials of degree 2
    and 3 by BIC, clearly, which is a difference above 2. A queue's latency is among the curves that
    those fit.

    Sources: see :mod:`~perflab.analysis.curves.broken_line`; BIC: G. Schwarz, Ann. Stat. 6, 1978;
    R. E. Kass, A. E. Raftery, J. Am. Stat. Assoc. 90, 1995 (how large a difference says something).
    """
    check_columns(table, "windows", ("trial_id", cpu, latency))
    trial, x, y = _usable(table, cpu, latency)
    own, trials = clusters(trial), counted(len(np.unique(trial)), "trial")
    if len(x) < SMALLEST_WINDOWS or own is None:
        reason = f"too few windows for a knee: {len(x)} in {trials}; {SMALLEST_WINDOWS} needed"
        return Knee(reason=reason)
    calm = _calmed(x, y)
    found = bend(x, calm, own, CONFIDENCE)
    if found is None:
        reason = f"no knee can be seen in {trials}: the CPU shares are too much alike"
        return Knee(reason=reason)
    unit = trials if own.of_trials else f"{own.count} blocks of windows within {trials}"
    if found.p_value >= USUAL_P:
        reason = f"no knee: no upward bend can be shown, p = {found.p_value:.2g}"
        return Knee(unit=unit, reason=reason)
    if not found.after > 0:
        return Knee(unit=unit, reason="no knee: latency falls with CPU throughout")
    smooth = _is_smooth(x, calm, own, found)
    return Knee(found.place, found.low, found.high, found.before, found.after, smooth, unit)


def _usable(
    table: pd.DataFrame, cpu: str, latency: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return trial numbers, CPU and log latency of usable windows, trial after trial."""
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
    calm: np.ndarray = usual + np.clip(y - usual, -reach, reach) if reach > 0 else y
    return calm


def _is_smooth(x: np.ndarray, y: np.ndarray, own: Clusters, found: Bend) -> bool:
    """Say whether a curve without a bend fits log latency y as well as the broken line."""
    n = _independent(found.residuals, own)
    floor = 1e-12 * max(found.squares_line, 1e-300)

    def bic(squares: float, terms: int) -> float:
        return n * math.log(max(squares, floor)) + terms * math.log(n)

    smooth = min(bic(_squares(x, y, own, degree), degree) for degree in SMOOTH_DEGREES)
    return smooth < bic(found.squares, TERMS_OF_A_BEND) + CLEARLY


def _independent(rest: np.ndarray, own: Clusters) -> float:
    """Return how many independent windows say as much as these, whose noise is AR(1)."""
    within = own.cluster[1:] == own.cluster[:-1]
    total = float(rest @ rest)
    rho = float((rest[1:] * rest[:-1])[within].sum()) / total if total > 0 else 0.0
    rho = min(LARGEST_RHO, max(0.0, rho))
    return max(2.0, len(rest) * (1 - rho) / (1 + rho))


def _squares(x: np.ndarray, y: np.ndarray, own: Clusters, degree: int) -> float:
    """Return the sum of squares that a polynomial of x leaves of y."""
    scale = max(float(np.abs(x).max()), 1e-300)
    terms = own.centred(np.column_stack([(x / scale) ** power for power in range(1, degree + 1)]))
    level = own.centred(y[:, None])[:, 0]
    rest = level - terms @ np.linalg.lstsq(terms, level, rcond=None)[0]
    return float(rest @ rest)
