"""The speed of the CPU before each trial as a covariate, where it is shown to cut the variance.

The covariate must be measured before the load. A probe after it also depends on the treatment, and
correcting for what a treatment did to the probe creates a false effect (P. R. Rosenbaum, J. R.
Stat. Soc. A 147, 1984; in simulations 29 to 100% of false alarms).

The slope comes from all treatments of the run at once, within treatments and blocks, so neither the
effect of a treatment nor a drift that pairing removes can bias it. It is used only with enough
residual degrees of freedom, and only if it clearly predicts the deviations of each block when it is
fitted without that block. The interval accounts for the fitted slope: see :func:`priced`. Sources:
R. A. Fisher, Statistical Methods for Research Workers, 4th ed. 1932, section 49.1 (analysis of
covariance); M. Stone, J. R. Stat. Soc. B 36, 1974 (choice by cross-validation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.statistics.comparison import CONFIDENCE

# The least cross-validated share of the variance that a covariate must remove to be used.
LEAST_CUT = 0.25
# Degrees of freedom of the analysis of covariance: (treatments - 1) (blocks - 1) - 1 if no trial is
# missing. Two treatments have 4 at six blocks and 9 at eleven, three have 9 at six. Below 9 a slope
# mostly widens the interval, and choosing it by the data gives too many false alarms.
SMALLEST_FREEDOM = 9
# Fewer blocks leave the effect too few degrees of freedom, however many treatments fit the slope.
SMALLEST_BLOCKS = 6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Adjustment:
    """How a response is corrected for a covariate.

    ``slope`` is d log(response) / d log(covariate), 0 if it is not used. ``cut`` is the share of
    the variance within treatments and blocks that it removes in cross-validation (NaN: unknown).
    ``squares`` is the sum of squares of the log covariate behind the slope, and ``freedom`` the
    residual degrees of freedom.
    """

    name: str
    slope: float
    cut: float
    squares: float = math.nan
    freedom: int = 0

    @property
    def used(self) -> bool:
        """Whether the covariate is used."""
        return self.slope != 0

    def text(self) -> str:
        """Return the correction in words; empty if there is none."""
        if not self.used:
            return ""
        return (
            f"adjusted for {self.name}, which cuts the variance within blocks by {self.cut:.0%} "
            f"(slope {self.slope:.2g}, {self.freedom} degrees of freedom)"
        )


def adjustment(trials: pd.DataFrame, response: str, covariate: str) -> Adjustment:
    """Return the correction of a response for a covariate, over all treatments of a run.

    ``trials`` are valid trials: treatment, block, the response and the covariate (positive), which
    must have been measured before the load.
    """
    unused = Adjustment(covariate, 0.0, math.nan)
    if covariate not in trials.columns or response not in trials.columns:
        return unused
    known = trials[["treatment", "block", response, covariate]].dropna()
    known = known[(known[response] > 0) & (known[covariate] > 0)]
    places = [pd.factorize(known[column])[0] for column in ("treatment", "block")]
    logs = np.log(known[[covariate, response]].to_numpy(float))
    return fitted(covariate, logs, *places)


def fitted(name: str, logs: np.ndarray, treatment: np.ndarray, block: np.ndarray) -> Adjustment:
    """Return the correction from logs of covariate and response, shape (trials, 2).

    ``treatment`` and ``block`` are numbers from 0 on, shape (trials,).
    """
    unused = Adjustment(name, 0.0, math.nan)
    if not len(logs) or block.max() + 1 < SMALLEST_BLOCKS:
        return unused
    residuals, rank = _within(logs, treatment, block)
    freedom, (x, y) = len(logs) - rank - 1, residuals.T
    if freedom < SMALLEST_FREEDOM or not x.any() or not y.any():
        return unused
    cut = _predicted(x, y, block)
    if not cut >= LEAST_CUT:
        return Adjustment(name, 0.0, cut)
    return Adjustment(name, float(x @ y / (x @ x)), cut, float(x @ x), freedom)


def priced(
    effects: np.ndarray, covariate: np.ndarray, fit: Adjustment, weight: float
) -> np.ndarray:
    """Return effects by block, corrected for the covariate, and spread to account for the slope.

    A slope that is fitted to the same blocks makes their deviations too small, and its own error
    moves their mean. So the corrected effects are spread around their mean: Student's interval over
    the blocks becomes that of the analysis of covariance, and the signed-rank interval and every
    later step widen in the same way.

    Parameters
    ----------
    effects, covariate : array, shape (blocks,)
        The contrast on the log response and on the log covariate; NaN where a side is missing.
    weight : float
        The sum of the squared weights that the contrast gives to trials of one block: 2 for one
        treatment over another.

    Notes
    -----
    Let s be the share of the slope's sum of squares that comes from this contrast, c the mean and S
    the sum of squares of the covariate's contrast. The corrected effects have n - 1 - s degrees of
    freedom, and their mean has the variance v (1/n + s c^2 / S). For two treatments s = 1, and this
    is least squares with n - 2 residual degrees of freedom.
    """
    from scipy import stats

    adjusted = effects - fit.slope * covariate
    known = np.isfinite(adjusted)
    a, c = adjusted[known], covariate[known]
    n, squares = len(a), float(((c - c.mean()) ** 2).sum()) if len(c) else 0.0
    if n < 3 or not squares > 0:
        return np.full(len(effects), math.nan)
    share = min(1.0, squares / (weight * fit.squares))
    freedom = n - 1 - share
    lever = 1 + n * share * float(c.mean()) ** 2 / squares
    t, usual_t = (float(stats.t.ppf((1 + CONFIDENCE) / 2, df)) for df in (freedom, n - 1))
    spread = math.sqrt((n - 1) / freedom * lever) * t / usual_t
    widened: np.ndarray = a.mean() + spread * (adjusted - a.mean())
    return widened


def _within(logs: np.ndarray, treatment: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the residuals of the two-way additive model, shape (trials, 2), and its rank.

    The fit is by least squares, so trials may be missing. A column that is only rounding is 0.
    """
    terms = np.hstack([np.eye(int(side.max()) + 1)[side] for side in (treatment, block)])
    solved, _, rank, _ = np.linalg.lstsq(terms, logs, rcond=None)
    residuals = logs - terms @ solved
    scale = np.maximum(1.0, np.abs(logs).max(axis=0))
    return np.where(np.abs(residuals).max(axis=0) > ROUNDING * scale, residuals, 0.0), int(rank)


def _predicted(x: np.ndarray, y: np.ndarray, block: np.ndarray) -> float:
    """Return the share of the sum of squares that slopes of the other blocks remove."""
    squares, products = np.bincount(block, x * x), np.bincount(block, x * y)
    others = squares.sum() - squares
    slopes = np.divide(
        products.sum() - products, others, out=np.zeros(len(others)), where=others > 0
    )
    return 1 - float(((y - slopes[block] * x) ** 2).sum()) / float((y * y).sum())
