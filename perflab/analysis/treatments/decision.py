"""What may be said of an effect: a difference, no difference that matters, or not yet.

==============  ==================================================================
decision        when
==============  ==================================================================
different       the 95% interval of the ratio excludes 1
equivalent      the 90% interval lies inside the margin (two one-sided 5% tests);
                said first: an effect may be certain and still too small to matter
undecided       neither; with the number of further blocks that would decide it
==============  ==================================================================

Sources: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987 (two one-sided tests);
J. Cohen, Statistical Power Analysis, 2nd ed. 1988, chapter 2 (power of the paired t test);
E. J. G. Pitman's efficiency 3/pi of the signed-rank test under normal errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from scipy import stats

from perflab.analysis.methods.comparison import CONFIDENCE, SMALLEST_SIGNED_RANK, mean_interval
from perflab.errors import AnalysisError
from perflab.numerals import counted

MARGIN = 0.03
POWER = 0.8
EFFICIENCY = 3 / math.pi
MOST_BLOCKS = 10_000
# Effect over standard error from which on the power is 1 at any n (a t table ends at 12.7).
CERTAIN = 100.0


class Kind(StrEnum):
    """What the trials so far allow to say."""

    DIFFERENT = "different"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Decision:
    """What may be said, and how many blocks more would decide it (0: none, -1: out of reach)."""

    kind: Kind
    margin: float
    further_blocks: int
    text: str


def decide(log_ratios: Sequence[float], margin: float = MARGIN) -> Decision:
    """Decide from the log ratios of the blocks.

    Parameters
    ----------
    log_ratios : sequence of float
        One per block; NaNs are left out.
    margin : float
        A difference of this share, either way, does not matter (0.03: 3%).

    Raises
    ------
    AnalysisError
        The margin is not above 0.
    """
    if not margin > 0:
        raise AnalysisError(f"margin = {margin} must be above 0")
    x = np.asarray(log_ratios, dtype=float)
    x = x[np.isfinite(x)]
    bound = math.log1p(margin)
    if len(x) < 2:
        return Decision(
            Kind.UNDECIDED, margin, -1, "fewer than 2 blocks: nothing can be said of the noise"
        )
    narrow, wide = mean_interval(x, 1 - 2 * (1 - CONFIDENCE)), mean_interval(x, CONFIDENCE)
    if -bound < narrow.low and narrow.high < bound:
        return Decision(Kind.EQUIVALENT, margin, 0, f"no difference larger than {margin:.0%}")
    if wide.low > 0 or wide.high < 0:
        return Decision(Kind.DIFFERENT, margin, 0, "the interval excludes no difference")
    return _undecided(x, margin, bound)


def _undecided(x: np.ndarray, margin: float, bound: float) -> Decision:
    """Say how many blocks would decide it, if mean and noise are what they seem."""
    noise, seen = float(x.std(ddof=1)), abs(float(x.mean()))
    to_difference = blocks_needed(seen, noise) if seen > 0 else -1
    to_equivalence = blocks_needed(bound - seen, noise, 0.1) if seen < bound else -1
    reachable = [count for count in (to_difference, to_equivalence) if count > 0]
    if not reachable:
        text = f"more than {MOST_BLOCKS} blocks would be needed"
        return Decision(Kind.UNDECIDED, margin, -1, text)
    wanted = max(min(reachable), len(x) + 1)
    further = wanted - len(x)
    return Decision(
        Kind.UNDECIDED,
        margin,
        further,
        f"about {counted(further, 'more block')} would decide it ({len(x)} so far)",
    )


def power(log_effect: float, noise: float, blocks: int, significance: float = 0.05) -> float:
    """Return the chance that a paired comparison finds an effect.

    Parameters
    ----------
    log_effect : float
        The true log ratio.
    noise : float
        Standard deviation of a block's log ratio (for two treatments of equal noise, that of a
        trial times the square root of 2).
    """
    if blocks < 2 or not noise > 0:
        return float(noise == 0 and blocks >= 2 and log_effect != 0)
    tail = significance / 2
    effective = float(blocks) if blocks < SMALLEST_SIGNED_RANK else blocks * EFFICIENCY
    if abs(log_effect) / noise * math.sqrt(effective) > CERTAIN:
        return 1.0
    freedom = effective - 1
    critical = float(stats.t.ppf(1 - tail, freedom))
    shift = abs(log_effect) / noise * math.sqrt(effective)
    # scipy gives NaN for the other tail where there is nothing left in it.
    other = float(np.nan_to_num(stats.nct.cdf(-critical, freedom, shift)))
    return float(stats.nct.sf(critical, freedom, shift)) + other


@lru_cache(maxsize=1024)
def blocks_needed(
    log_effect: float, noise: float, significance: float = 0.05, wanted: float = POWER
) -> int:
    """Return the blocks that find an effect with probability ``wanted``; -1: more than 10,000."""
    if not noise > 0:
        return 2
    high = 2
    while power(log_effect, noise, high, significance) < wanted:
        high *= 2
        if high > MOST_BLOCKS:
            return -1
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if power(log_effect, noise, middle, significance) >= wanted:
            high = middle
        else:
            low = middle
    return high


def smallest_effect(noise: float, blocks: int, wanted: float = POWER) -> float:
    """Return the smallest log ratio that so many blocks find with probability ``wanted``."""
    if blocks < 2:
        return math.inf
    low, high = 0.0, 1.0
    while power(high, noise, blocks) < wanted:
        high *= 2
        if high > 100:
            return math.inf
    for _ in range(50):
        middle = (low + high) / 2
        if power(middle, noise, blocks) >= wanted:
            high = middle
        else:
            low = middle
    return high
