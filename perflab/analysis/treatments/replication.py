"""What a single run of A, then of B, would have shown: the way most studies measure.

From the scatter of a contrast over this machine's blocks. A block is such a run: one trial of
each side, some other trials and some drift between them. What a further block would show follows
Student's t around the mean of the n blocks, with n - 1 degrees of freedom and the scale
s sqrt(1 + 1/n) (the predictive distribution of a normal sample). Blocks have a random order; a run
that always takes A first adds a drift of the machine to the effect, which is not in here. Where a
side is several treatments, or the effect an interaction, it is a single run of each of them.

Source: G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, section 4.7 (a further value of a
normal sample).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.analysis.treatments.published import published_sign, zone_of
from perflab.analysis.treatments.verdict import SMALLEST_N
from perflab.recordings import Contrast


@dataclass(frozen=True)
class Replication:
    """The chance that a single run shows the published sign, and a size within its zone.

    NaN where none was published.
    """

    sign: float
    size: float

    def text(self) -> str:
        """Return ``sign 97%, size 45%``; empty where there is nothing to show."""
        parts = {"sign": self.sign, "size": self.size}
        return ", ".join(f"{name} {_share(p)}" for name, p in parts.items() if math.isfinite(p))


def single_run(by_block: Sequence[float], contrast: Contrast) -> Replication | None:
    """Return what a single A-then-B run would show; None below 3 blocks.

    ``by_block`` are the log ratios of the blocks, or their differences, corrected for nothing: a
    single run is corrected for nothing either.
    """
    x = np.asarray(by_block, dtype=float)
    if len(x) < SMALLEST_N:
        return None
    sign, zone = published_sign(contrast), zone_of(contrast)
    return Replication(
        _chance(x, 0.0, math.inf) if sign > 0 else _chance(x, -math.inf, 0.0) if sign else math.nan,
        _chance(x, zone.low, zone.high) if zone else math.nan,
    )


def _chance(x: np.ndarray, low: float, high: float) -> float:
    """Return the probability that a further value lies between two ends."""
    from scipy import special

    mean, scale = float(x.mean()), float(x.std(ddof=1)) * math.sqrt(1 + 1 / len(x))
    if not scale > 0:
        return float(low < mean < high)
    ends = (np.array([low, high]) - mean) / scale
    # The lower tail of Student's t: scipy.stats.t.cdf takes ten times as long for two numbers.
    below, above = special.stdtr(len(x) - 1, ends)
    return float(above - below)


def _share(p: float) -> str:
    """Return a probability as whole percent, never as certain."""
    return "> 99%" if p > 0.99 else "< 1%" if p < 0.01 else f"{p:.0%}"
