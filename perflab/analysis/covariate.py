"""The speed of the CPU before each trial as a covariate, where it is shown to cut the variance.

Only what was measured before the load may serve: a probe after it answers to the treatment as well,
and taking out what a treatment did to the probe plants an effect that is none (P. R. Rosenbaum,
J. R. Stat. Soc. A 147, 1984; in simulations false alarms of 29 to 100%).

The slope comes from all treatments of the run at once, within treatments and blocks, so that no
effect of a treatment can bend it and no drift that pairing removes anyway can feign it. It is used
where it has enough residual degrees of freedom and, left out one block at a time, predicts the
other blocks' deviations clearly better than nothing does. The interval pays for it: see
:func:`priced`. Sources: R. A. Fisher, Statistical Methods for Research Workers, 4th ed. 1932,
section 49.1 (analysis of covariance); M. Stone, J. R. Stat. Soc. B 36, 1974 (choice by
cross-validation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.statistics.comparison import CONFIDENCE

# Cross-validated share of the variance that must go before a covariate is believed.
LEAST_CUT = 0.25
# Of the analysis of covariance: (treatments - 1) (blocks - 1) - 1 where no trial is missing; two
# treatments have 4 at six blocks and 9 at eleven, three have 9 at six. Below 9 a slope costs the
# interval more than it mostly gives, and choosing it by the data costs level.
SMALLEST_FREEDOM = 9
# Fewer leave the effect itself too few degrees of freedom, however many treatments tell the slope.
SMALLEST_BLOCKS = 6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Adjustment:
    """How a response is corrected for a covariate.

    ``slope`` is d log(response) / d log(covariate), 0 when it is not used; ``cut`` the share of
    the variance within treatments and blocks that it takes away in cross-validation (NaN: not
    known). ``squares`` is the sum of squares of the covariate, on logs, that the slope rests on,
    ``freedom`` what is left of the trials beyond treatments, blocks and slope.
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
        """Say what was done."""
        if not self.used:
            return ""
        return (
            f"adjusted for {self.name}, which cuts the variance within blocks by {self.cut:.0%} "
            f"(slope {self.slope:.2g}, {self.freedom} degrees of freedom)"
        )


def adjustment(trials: pd.DataFrame, response: str, covariate: str) -> Adjustment:
    """Return the correction of a response for a covariate, over all treatments of a run.

    ``trials`` are valid ones: treatment, block, the response and the covariate (positive), which
    must have been measured before the load.
    """
    nothing = Adjustment(covariate, 0.0, math.nan)
    if covariate not in trials.columns or response not in trials.columns:
        return nothing
    known = trials[["treatment", "block", response, covariate]].dropna()
    known = known[(known[response] > 0) & (known[covariate] > 0)]
    sides = [pd.factorize(known[side])[0] for side in ("treatment", "block")]
    both = np.log(known[[covariate, response]].to_numpy(float))
    return fitted(covariate, both, *sides)


def fitted(name: str, both: np.ndarray, treatment: np.ndarray, block: np.ndarray) -> Adjustment:
    """Return the correction from logs of covariate and response, shape (trials, 2).

    ``treatment`` and ``block`` are numbers from 0 on, shape (trials,).
    """
    nothing = Adjustment(name, 0.0, math.nan)
    if not len(both) or block.max() + 1 < SMALLEST_BLOCKS:
        return nothing
    left, rank = _within(both, treatment, block)
    freedom, (x, y) = len(both) - rank - 1, left.T
    if freedom < SMALLEST_FREEDOM or not x.any() or not y.any():
        return nothing
    cut = _predicted(x, y, block)
    if not cut >= LEAST_CUT:
        return Adjustment(name, 0.0, cut)
    return Adjustment(name, float(x @ y / (x @ x)), cut, float(x @ x), freedom)


def priced(
    effects: np.ndarray, covariate: np.ndarray, found: Adjustment, weight: float
) -> np.ndarray:
    """Return effects by block less what the covariate explains, spread by what the slope cost.

    A slope fitted to the same blocks makes their deviations smaller than they are, and its own
    error moves their mean. The adjusted effects are spread around their mean so that Student's
    interval over the blocks becomes that of the analysis of covariance; the signed-rank interval
    and every later step then widen alike.

    Parameters
    ----------
    effects, covariate : array, shape (blocks,)
        The contrast on the log response and on the log covariate; NaN where a side is missing.
    weight : float
        Sum of the squared weights that the contrast gives to trials of one block: 2 for one
        treatment over another.

    Notes
    -----
    With s the share of the slope's sum of squares that this contrast brought in, the adjusted
    effects have n - 1 - s degrees of freedom, and their mean the variance
    v (1/n + s c^2 / S), c being the mean and S the sum of squares of the covariate's contrast:
    for two treatments s = 1, and this is least squares with residual degrees of freedom n - 2.
    """
    from scipy import stats

    adjusted = effects - found.slope * covariate
    known = np.isfinite(adjusted)
    a, c = adjusted[known], covariate[known]
    n, squares = len(a), float(((c - c.mean()) ** 2).sum()) if len(c) else 0.0
    if n < 3 or not squares > 0:
        return np.full(len(effects), math.nan)
    share = min(1.0, squares / (weight * found.squares))
    freedom = n - 1 - share
    lever = 1 + n * share * float(c.mean()) ** 2 / squares
    own, usual = (float(stats.t.ppf((1 + CONFIDENCE) / 2, each)) for each in (freedom, n - 1))
    spread = math.sqrt((n - 1) / freedom * lever) * own / usual
    widened: np.ndarray = a.mean() + spread * (adjusted - a.mean())
    return widened


def _within(logs: np.ndarray, treatment: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, int]:
    """Return logs less what their treatment and their block explain, and what that takes.

    Residuals of the two-way additive model, shape (trials, 2), by least squares: trials may be
    missing. Exactly 0 where nothing but rounding is left.
    """
    terms = np.hstack([np.eye(int(side.max()) + 1)[side] for side in (treatment, block)])
    solved, _, rank, _ = np.linalg.lstsq(terms, logs, rcond=None)
    left = logs - terms @ solved
    scale = np.maximum(1.0, np.abs(logs).max(axis=0))
    return np.where(np.abs(left).max(axis=0) > ROUNDING * scale, left, 0.0), int(rank)


def _predicted(x: np.ndarray, y: np.ndarray, block: np.ndarray) -> float:
    """Return the share of the sum of squares that slopes from the other blocks take away."""
    squares, products = np.bincount(block, x * x), np.bincount(block, x * y)
    others = squares.sum() - squares
    slopes = np.divide(
        products.sum() - products, others, out=np.zeros(len(others)), where=others > 0
    )
    return 1 - float(((y - slopes[block] * x) ** 2).sum()) / float((y * y).sum())
