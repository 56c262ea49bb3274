"""y = a x^b over trials: the exponent with its interval, and whether it is a power law at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.curves.correlation import check_columns
from perflab.analysis.methods.comparison import CONFIDENCE, USUAL_P
from perflab.analysis.methods.quantiles import t_interval
from perflab.errors import AnalysisError

SMALLEST_X = 3
ENOUGH_BLOCKS = 4
LARGEST_AUTOCORRELATION = 0.95
LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Interval:
    """A value with its interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @classmethod
    def missing(cls) -> Interval:
        """Return an interval of NaNs."""
        return cls(math.nan, math.nan, math.nan)

    def exp(self) -> Interval:
        """Return the interval of the exponential."""
        return Interval(*(math.exp(min(each, LARGEST_LOG)) for each in self._parts()))

    def text(self, form: str = "{:.3g}") -> str:
        """Return ``value [low, high]``, or the value and that it has no interval."""
        if not math.isfinite(self.value):
            return "unknown"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{form.format(self.value)} (no interval)"
        value, low, high = (form.format(each) for each in self._parts())
        return f"{value} [{low}, {high}]"

    def _parts(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law.

    ``factor`` is a, ``exponent`` b. NaN where ``supported`` is False. ``curvature_p`` is the
    p-value of a straight line on logs against a parabola. ``n`` counts ``unit``: blocks or trials.
    """

    factor: Interval
    exponent: Interval
    curvature_p: float
    n: int
    trials: int
    supported: bool
    reason: str = ""
    warnings: tuple[str, ...] = ()
    unit: str = "trials"

    def text(self) -> str:
        """Return the exponent in a sentence, or why there is none, with n and warnings."""
        more = "".join(f"; {each}" for each in self.warnings if each != self.reason)
        if not self.supported:
            return self.reason + more
        return (
            f"grows with the power {self.exponent.text('{:.2f}')} (n = {self.n} {self.unit}{more})"
        )


def power_law(table: pd.DataFrame, x: str, y: str) -> PowerLaw:
    """Fit y = a x^b on logs.

    From 4 blocks that hold at least two x each on, every block has an exponent of its own and
    Student's t over blocks gives the interval; otherwise least squares over trials with a level
    per block, whose interval, as the test for curvature, allows for noise that neighbouring rows
    share: AR(1) in the order of the rows.

    Parameters
    ----------
    table : DataFrame
        One row per valid trial, in the order they ran: both columns and, where there are blocks,
        ``block``. Rows with
        NaN, or with a y that is not positive, are left out and counted in the warnings.

    Raises
    ------
    AnalysisError
        A column is missing, or an x is not positive.

    Sources: G. A. F. Seber, A. J. Lee, Linear Regression Analysis, 2nd ed. 2003, chapter 6 and
    section 3.10 (least squares under correlated noise).
    """
    check_columns(table, "trials", (x, y))
    across = pd.to_numeric(table[x]).to_numpy(float)
    up = pd.to_numeric(table[y]).to_numpy(float)
    if (across <= 0).any() or np.isinf(across).any():
        raise AnalysisError(f"{x}: a power law needs positive, finite values")
    good = np.isfinite(across) & np.isfinite(up) & (up > 0)
    left_out = int((~good).sum())
    warnings: tuple[str, ...] = ()
    if left_out:
        warnings = (f"{left_out} of {len(good)} points without a positive {y} are left out",)
    block = table["block"].to_numpy()[good] if "block" in table.columns else np.zeros(good.sum())
    log_x, log_y, unit = np.log(across[good]), np.log(up[good]), pd.factorize(block)[0]
    distinct = len(np.unique(log_x))
    if distinct < SMALLEST_X:
        reason = f"no power law from {distinct} distinct values of {x}: {SMALLEST_X} are needed"
        return _none(reason, len(log_x), warnings)
    return _fitted(log_x, log_y, unit, warnings)


def _fitted(x: np.ndarray, y: np.ndarray, unit: np.ndarray, warnings: tuple[str, ...]) -> PowerLaw:
    slopes, levels = _by_block(x, y, unit)
    if len(slopes) >= ENOUGH_BLOCKS:
        n, counts = len(slopes), "blocks"
        exponent, level = _student(slopes), _student(levels)
    else:
        n, counts = len(x), "trials"
        exponent, level = _least_squares(x, y, unit)
    if not math.isfinite(exponent.low):
        reason = f"no power law: {len(x)} trials leave no room for an interval"
        return _none(reason, len(x), warnings)
    curvature, p_value = _curvature(x, y, unit)
    if p_value < USUAL_P:
        way = "grows" if curvature > 0 else "falls"
        warnings += (f"no power law: the exponent {way} with x (p = {p_value:.2g})",)
    if exponent.low == exponent.high:
        warnings += ("all units give the same exponent: the interval has no width",)
    return PowerLaw(level.exp(), exponent, p_value, n, len(x), True, "", warnings, counts)


def _by_block(x: np.ndarray, y: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and level of every block that holds at least two distinct x."""
    lines = [
        np.polynomial.polynomial.polyfit(x[unit == each], y[unit == each], 1)
        for each in np.unique(unit)
        if np.ptp(x[unit == each]) > 1e-9
    ]
    both = np.array(lines).reshape(-1, 2)
    return both[:, 1], both[:, 0]


def _student(values: np.ndarray) -> Interval:
    return Interval(float(values.mean()), *t_interval(values))


def _least_squares(x: np.ndarray, y: np.ndarray, unit: np.ndarray) -> tuple[Interval, Interval]:
    """Return the exponent, and the log factor of a middling block."""
    from scipy import stats

    own_x, own_y = _centred(x, unit), _centred(y, unit)
    size = float(own_x @ own_x)
    if len(x) - len(np.unique(unit)) - 1 < 1 or size < 1e-12:
        return Interval.missing(), Interval.missing()
    slope = float(own_x @ own_y) / size
    rest = own_y - slope * own_x
    alike = autocorrelation(rest, unit)
    freedom = _freedom(len(x), unit, 1, alike)
    variance = float(rest @ rest) / _left_over(len(x), unit, 1, alike)
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    # What neighbours share does not average out along x as independent noise does.
    spread = float(own_x @ _smoothed(own_x, unit, alike)) / size**2
    together = len(x) * (1 - alike) / (1 + alike)
    off, level = t * math.sqrt(variance * spread), float((y - slope * x).mean())
    away = t * math.sqrt(variance * (1 / together + float(x.mean()) ** 2 * spread))
    return Interval(slope, slope - off, slope + off), Interval(level, level - away, level + away)


def autocorrelation(rest: np.ndarray, unit: np.ndarray) -> float:
    """Return that of residuals at lag 1 within blocks, in the order of the rows; at least 0.

    Raised by its bias about fitted lines (F. H. C. Marriott, J. A. Pope, Biometrika 41, 1954).
    """
    total, within = float(rest @ rest), unit[1:] == unit[:-1]
    if not total > 1e-18 * len(rest):
        return 0.0
    found = float((rest[1:] * rest[:-1])[within].sum()) / total
    found += (2 + 4 * max(0.0, found)) / len(rest) if found > 0 else 0.0
    return min(LARGEST_AUTOCORRELATION, max(0.0, found))


def _freedom(n: int, unit: np.ndarray, terms: int, alike: float) -> float:
    """Return the degrees of freedom of residuals whose neighbours are so much alike."""
    return max(1.0, (n - len(np.unique(unit)) - terms) * (1 - alike) / (1 + alike))


def _left_over(n: int, unit: np.ndarray, terms: int, alike: float) -> float:
    """Return what to divide squared residuals by: fitted terms take more of what wanders."""
    lost = (len(np.unique(unit)) + terms) * (1 + alike) / (1 - alike)
    return max(n - lost, n / 2, 1.0) if alike else float(n - lost)


def _smoothed(values: np.ndarray, unit: np.ndarray, alike: float) -> np.ndarray:
    """Return R @ values, R being the AR(1) correlations of rows within blocks; shape of values."""
    places = np.arange(len(values))
    apart = np.abs(places[:, None] - places)
    correlations = np.where(unit[:, None] == unit, alike**apart, 0.0)
    smoothed: np.ndarray = correlations @ values
    return smoothed


def _curvature(x: np.ndarray, y: np.ndarray, unit: np.ndarray) -> tuple[float, float]:
    """Return the coefficient of (log x)^2 and its p-value; 1 where it cannot be told."""
    from scipy import stats

    middle = x - x.mean()
    terms = np.column_stack([_centred(middle, unit), _centred(middle**2, unit)])
    own_y = _centred(y, unit)
    freedom = len(x) - len(np.unique(unit)) - 2
    solved, _, rank, _ = np.linalg.lstsq(terms, own_y, rcond=1e-9)
    if freedom < 1 or rank < 2:
        return 0.0, 1.0
    rest = own_y - terms @ solved
    alike = autocorrelation(rest, unit)
    left = _freedom(len(x), unit, 2, alike)
    # Below this a deviation is rounding, not curvature.
    variance = float(rest @ rest) / _left_over(len(x), unit, 2, alike)
    variance = max(variance, 1e-24 * max(1.0, float(y @ y)))
    inverse = np.linalg.inv(terms.T @ terms)
    middle_part = np.column_stack([_smoothed(each, unit, alike) for each in terms.T])
    error = math.sqrt(variance * float((inverse @ terms.T @ middle_part @ inverse)[1, 1]))
    return float(solved[1]), float(2 * stats.t.sf(abs(solved[1]) / error, left))


def _centred(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    means = np.bincount(unit, weights=values) / np.bincount(unit)
    centred: np.ndarray = values - means[unit]
    return centred


def _none(reason: str, trials: int, warnings: tuple[str, ...]) -> PowerLaw:
    nothing = Interval.missing()
    return PowerLaw(
        nothing,
        nothing,
        math.nan,
        0,
        trials,
        False,
        reason,
        (*warnings, reason),
    )
