"""y = a x^b on logs: an exponent for every block, with Student's interval over blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.curves.correlation import check_columns
from perflab.analysis.methods.quantiles import t_interval
from perflab.errors import AnalysisError
from perflab.numerals import counted

SMALLEST_X = 3
ENOUGH_BLOCKS = 4
# Below this a distance of logs, or a curvature, is rounding.
ROUNDING = 1e-9
LARGEST_LOG = 300.0


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law: y = factor * x^exponent, the exponent with its 95% interval.

    The numbers are NaN where there is none, as ``reason`` says. ``n`` counts the blocks, which
    ``unit`` names.
    """

    factor: float
    exponent: float
    low: float
    high: float
    n: int
    unit: str
    reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether there is an exponent."""
        return not self.reason

    def text(self) -> str:
        """Return the exponent in a sentence, or why there is none, with n and warnings."""
        if self.reason:
            return "; ".join([self.reason, *self.warnings])
        evidence = "; ".join([f"n = {counted(self.n, self.unit)}", *self.warnings])
        interval = f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]"
        return f"grows with the power {interval} ({evidence})"


def power_law(table: pd.DataFrame, x: str, y: str, unit: str = "block") -> PowerLaw:
    """Fit y = a x^b on logs, one line for each block that holds at least two x.

    There is no power law from fewer than 3 distinct x or 4 blocks. Where the blocks' parabolas
    bend the same way, a warning says that it is none.

    Parameters
    ----------
    table : DataFrame
        One row per point: block and both columns. Rows with NaN, or with a y that is not positive,
        are left out and counted in the warnings.
    unit : str
        What a block is called.

    Raises
    ------
    AnalysisError
        A column is missing, or an x is not positive.
    """
    check_columns(table, "points", ("block", x, y))
    across, up = (pd.to_numeric(table[name]).astype(float) for name in (x, y))
    if (across <= 0).any() or np.isinf(across).any():
        raise AnalysisError(f"{x}: a power law needs positive, finite values")
    good = across.notna() & np.isfinite(up) & (up > 0)
    warnings: tuple[str, ...] = ()
    if not good.all():
        left_out = int((~good).sum())
        warnings = (f"{left_out} of {len(good)} points without a positive {y} are left out",)
    logs = pd.DataFrame({"x": np.log(across[good]), "y": np.log(up[good])})
    lines = _fitted(logs, table["block"][good], 1)
    reason = ""
    if (distinct := logs["x"].nunique()) < SMALLEST_X:
        reason = f"no power law from {distinct} distinct values of {x}: {SMALLEST_X} are needed"
    elif len(lines) < ENOUGH_BLOCKS:
        reason = f"no exponent from {counted(len(lines), unit)}: {ENOUGH_BLOCKS} are needed"
    if reason:
        return PowerLaw(*(math.nan,) * 4, len(lines), unit, reason, warnings)
    low, high = t_interval(lines[:, 1])
    level, exponent = lines.mean(axis=0)
    warnings += _bent(_fitted(logs, table["block"][good], 2)[:, 2])
    factor = math.exp(min(level, LARGEST_LOG))
    return PowerLaw(factor, float(exponent), low, high, len(lines), unit, "", warnings)


def _fitted(logs: pd.DataFrame, block: pd.Series[int], degree: int) -> np.ndarray:
    """Return polynomials of the blocks that have enough x for one, shape (blocks, degree + 1)."""
    fits = [
        np.polynomial.polynomial.polyfit(own["x"], own["y"], degree)
        for _, own in logs.groupby(block)
        if (np.diff(np.sort(own["x"])) > ROUNDING).sum() >= degree
    ]
    return np.array(fits).reshape(-1, degree + 1)


def _bent(curvatures: np.ndarray) -> tuple[str, ...]:
    """Return a warning where the 95% interval of the blocks' curvatures excludes 0."""
    low, high = t_interval(curvatures)
    if low > ROUNDING or high < -ROUNDING:
        way = "grows" if low > 0 else "falls"
        interval = f"curvature {curvatures.mean():.2g} [{low:.2g}, {high:.2g}]"
        return (f"no power law: the exponent {way} with x ({interval})",)
    return ()
