"""The speed of the CPU around each trial as a covariate, where it is shown to cut the variance.

The slope comes from all treatments of the run at once, within treatments and blocks, so that no
effect of a treatment can bend it and no drift that pairing removes anyway can feign it; it is used
only if, left out one block at a time, it predicts the other blocks' deviations clearly better than
nothing does. Source: R. A. Fisher, Statistical Methods for
Research Workers, 4th ed. 1932, section 49.1 (analysis of covariance); M. Stone, J. R. Stat. Soc. B
36, 1974 (choice by cross-validation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

# Cross-validated share of the variance that must go before a covariate is believed.
LEAST_CUT = 0.25
SMALLEST_BLOCKS = 6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Adjustment:
    """How a response is corrected for a covariate.

    ``slope`` is d log(response) / d log(covariate), 0 when it is not used; ``cut`` the share of
    the variance within treatments and blocks that it takes away in cross-validation (NaN: not
    known).
    """

    name: str
    slope: float
    cut: float

    @property
    def used(self) -> bool:
        """Whether the covariate is used."""
        return self.slope != 0

    def text(self) -> str:
        """Say what was done."""
        if not self.used:
            return ""
        return f"adjusted for {self.name}, which cuts the variance within blocks by {self.cut:.0%}"


def adjustment(trials: pd.DataFrame, response: str, covariate: str) -> Adjustment:
    """Return the correction of a response for a covariate, over all treatments of a run.

    Parameters
    ----------
    trials : DataFrame
        Valid trials: treatment, block, the response and the covariate (positive).
    """
    nothing = Adjustment(covariate, 0.0, float("nan"))
    if covariate not in trials.columns or response not in trials.columns:
        return nothing
    known = trials[["treatment", "block", response, covariate]].dropna()
    known = known[(known[response] > 0) & (known[covariate] > 0)]
    if known["block"].nunique() < SMALLEST_BLOCKS:
        return nothing
    y = _within(known, response)
    x = _within(known, covariate)
    if not x.any() or not y.any():
        return nothing
    cut = _predicted(x, y, known["block"].to_numpy())
    if not cut >= LEAST_CUT:
        return Adjustment(covariate, 0.0, cut)
    return Adjustment(covariate, float(x @ y / (x @ x)), cut)


def _within(known: pd.DataFrame, name: str) -> np.ndarray:
    """Return logs less what their treatment and their block explain, shape (trials,).

    Residuals of the two-way additive model, by least squares: trials may be missing. Exactly 0
    where nothing but rounding is left.
    """
    logs = np.log(known[name].to_numpy(float))
    sides = [pd.get_dummies(known[side], dtype=float) for side in ("treatment", "block")]
    terms = np.hstack([side.to_numpy() for side in sides])
    left = logs - terms @ np.linalg.lstsq(terms, logs, rcond=None)[0]
    scale = max(1.0, float(np.abs(logs).max()))
    return left if np.abs(left).max() > ROUNDING * scale else np.zeros_like(left)


def _predicted(x: np.ndarray, y: np.ndarray, blocks: np.ndarray) -> float:
    """Return the share of the sum of squares that slopes from the other blocks take away."""
    left, before = 0.0, 0.0
    for block in np.unique(blocks):
        own = blocks == block
        others = float((x[~own] ** 2).sum())
        slope = float((x[~own] * y[~own]).sum()) / others if others > 0 else 0.0
        left += float(((y[own] - slope * x[own]) ** 2).sum())
        before += float((y[own] ** 2).sum())
    return 1 - left / before
