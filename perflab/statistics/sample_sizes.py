"""How many blocks a comparison needs, and what so many blocks find.

From 6 to 24 blocks the power is that of the exact signed-rank test under a shifted normal, by
simulation with a fixed seed. The test finds a shift where all but k Walsh averages lie beyond 0,
that is, where the shift exceeds minus the (k + 1)-th smallest Walsh average of the noise. So one
set of draws gives the power at every shift, and the power rises with the shift in every draw.
Beyond 24 blocks the power is that of a t test of 3/pi as many blocks, which differs by less than
0.01 from there on; below 6 blocks it is that of the t test itself.

Sources: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. 2014,
section 3.1; E. J. G. Pitman's efficiency 3/pi of the signed-rank test under normal errors;
J. Cohen, Statistical Power Analysis, 2nd ed. 1988, chapter 2; D. J. Schuirmann, J. Pharmacokinet.
Biopharm. 15, 1987 (two one-sided tests).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from perflab.statistics import signed_rank
from perflab.statistics.mean_intervals import CONFIDENCE, SMALLEST_SIGNED_RANK

POWER = 0.8
EFFICIENCY = 3 / math.pi
MOST_SIMULATED = 24
DRAWS = 5_000
SEED = 20_261_122
MOST_BLOCKS = 10_000
# The power is 1 at any n above this effect over its standard error (a t table ends at 12.7).
CERTAIN = 100.0


def power(
    log_effect: float, noise: float, blocks: int, significance: float = 1 - CONFIDENCE
) -> float:
    """Return the probability that a paired comparison finds a true log ratio.

    ``noise`` is the standard deviation of a block's log ratio (for two treatments of equal noise,
    that of a trial times the square root of 2).
    """
    if blocks < 2 or not noise > 0:
        return float(noise == 0 and blocks >= 2 and log_effect != 0)
    shift, tail = abs(log_effect) / noise, significance / 2
    return _beyond(shift, blocks, tail) + _beyond(-shift, blocks, tail)


def equivalence_power(log_effect: float, noise: float, blocks: int, bound: float) -> float:
    """Return the probability that both one-sided tests find an effect within +- ``bound``.

    It is a lower bound, because the case that both tests miss is counted twice.
    """
    if blocks < 2 or not noise > 0:
        return float(noise == 0 and blocks >= 2 and abs(log_effect) < bound)
    sides = [(bound + sign * log_effect) / noise for sign in (1, -1)]
    return max(0.0, sum(_beyond(side, blocks, 1 - CONFIDENCE) for side in sides) - 1)


def blocks_needed(
    log_effect: float, noise: float, significance: float = 1 - CONFIDENCE, least: int = 2
) -> int:
    """Return the fewest blocks, at least ``least``, that find an effect with a chance of 80%.

    -1 means more than 10,000.
    """
    return _fewest(lambda blocks: power(log_effect, noise, blocks, significance), least)


def blocks_for_equivalence(log_effect: float, noise: float, bound: float, least: int = 2) -> int:
    """Return the fewest blocks that find an effect within +- ``bound``, as blocks_needed does."""
    return _fewest(lambda blocks: equivalence_power(log_effect, noise, blocks, bound), least)


def noise_range(noise: float, blocks: int) -> tuple[float, float]:
    """Return the 80% interval of a standard deviation that was estimated from ``blocks``."""
    from scipy import stats

    freedom = blocks - 1
    ends = stats.chi2.ppf([(1 + POWER) / 2, (1 - POWER) / 2], freedom)
    low, high = noise * np.sqrt(freedom / ends)
    return float(low), float(high)


def _fewest(power_of: Callable[[int], float], least: int) -> int:
    low = high = least
    while power_of(high) < POWER:
        low, high = high, 2 * high
        if high > MOST_BLOCKS:
            return -1
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle) >= POWER:
            high = middle
        else:
            low = middle
    return high


def _beyond(shift: float, blocks: int, tail: float) -> float:
    """Return the probability that the lower end of an interval lies above 0.

    ``shift`` is the true effect over the noise of a block.
    """
    from scipy import stats

    if SMALLEST_SIGNED_RANK <= blocks <= MOST_SIMULATED:
        k, _ = signed_rank.critical(blocks, tail)
        if k < 0:
            return 0.0
        return float(np.searchsorted(_needed_shifts(blocks, k), shift)) / DRAWS
    effective = float(blocks) if blocks < SMALLEST_SIGNED_RANK else blocks * EFFICIENCY
    centre = shift * math.sqrt(effective)
    if abs(centre) > CERTAIN:
        return float(centre > 0)
    critical = float(stats.t.ppf(1 - tail, effective - 1))
    # scipy gives NaN where a tail is empty.
    return float(np.nan_to_num(stats.nct.sf(critical, effective - 1, centre)))


@lru_cache(maxsize=512)
def _needed_shifts(blocks: int, k: int) -> np.ndarray:
    """Return, sorted, the shift in units of the noise that each draw needs to be found."""
    noise = np.random.default_rng(SEED).standard_normal((DRAWS, blocks))
    i, j = np.triu_indices(blocks)
    walsh = (noise[:, i] + noise[:, j]) / 2
    return np.sort(-np.partition(walsh, k, axis=1)[:, k])
