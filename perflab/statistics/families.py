"""What a paired comparison finds: the power of the tests that intervals of effects invert.

From 6 to 24 blocks the power of the exact signed-rank test under a shifted normal, by simulation
with a fixed seed: the test finds a shift where all but k Walsh averages lie beyond 0, which is to
say where the shift exceeds minus the (k + 1)-th smallest Walsh average of the noise. One set of
draws so gives the power at every shift, and it rises with the shift in every draw. Beyond 24 blocks
a t test of 3/pi as many blocks, which differs by less than 0.01 from there on; below 6 the t test
itself.

Sources: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. 2014,
section 3.1; E. J. G. Pitman's efficiency 3/pi of the signed-rank test under normal errors;
J. Cohen, Statistical Power Analysis, 2nd ed. 1988, chapter 2; D. J. Schuirmann, J. Pharmacokinet.
Biopharm. 15, 1987 (two one-sided tests).

Several claims tested at once: p-values corrected, and what each claim then needs by itself.

A verdict's direction and a decision "different" need the interval to exclude no effect and the
p-value, adjusted over the claims of the run about the same response, to be 0.05 at most: of the
effects so found, at most one in twenty is expected to be none.

A family is a response: what lowers the p90, say. Claims about several responses are several
questions, each of which keeps its rate of false discoveries by itself (B. Efron, Ann. Appl. Stat.
2, 2008: classes that differ are corrected apart). All of them together keep it where some effects
are there; where none is, one run of six tells a false direction about some of four responses
(``docs/what-the-lab-can-resolve.md``). The percentiles of one step are no new steps: in one family
with them, eight blocks, of which no p is below 0.0078, could show no single step of a ladder, be it
ever so large.

Why not intervals widened for the selection (Y. Benjamini, D. Yekutieli, JASA 100, 2005), for both
parts of a verdict: with R of m claims found they stand at 1 - 0.05 R/m, and at 8 blocks the
signed-rank test has no interval above 99.2%. With one effect among seven claims nothing could be
said of any size then, not even of one that is plainly contradicted; so only the direction is lost.
The size is judged claim by claim, and said to be: where the truth lies just outside the zone of the
published size, up to one claim in twenty is found to agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from perflab.statistics import signed_rank
from perflab.statistics.comparison import (
    CONFIDENCE,
    SMALLEST_SIGNED_RANK,
    USUAL_P,
    benjamini_hochberg,
)
from perflab.statistics.in_words import counted


@dataclass(frozen=True)
class Corrected:
    """The p-value of a claim, and the same adjusted over the ``claims`` tested beside it."""

    p_value: float
    adjusted: float
    claims: int

    @property
    def holds(self) -> bool:
        """Whether the claim is found, all those beside it allowed for."""
        return self.adjusted <= USUAL_P

    @property
    def own_level(self) -> float:
        """Return which p-value this claim would need, were all others as they are."""
        return USUAL_P * self.p_value / self.adjusted if self.adjusted > 0 else USUAL_P

    def text(self) -> str:
        """Return ``p, adjusted for 15 claims, is 0.12``."""
        return f"p, adjusted for {counted(self.claims, 'claim')}, is {self.adjusted:.2g}"


def corrected(p_values: Sequence[float], families: Sequence[str] | None = None) -> list[Corrected]:
    """Return every p-value of a run with its adjusted one (NaN: not tested, and not counted).

    ``families`` names the family of each p-value; without them, all are of one.
    """
    p = np.asarray(p_values, dtype=float)
    of = np.asarray(families if families is not None else [""] * len(p), dtype=object)
    found: dict[int, Corrected] = {}
    for family in dict.fromkeys(of):
        places = np.flatnonzero(of == family)
        claims = int(np.isfinite(p[places]).sum())
        adjusted = benjamini_hochberg(p[places].tolist())
        for place, own in zip(places, adjusted, strict=True):
            found[int(place)] = Corrected(float(p[place]), own, claims)
    return [found[place] for place in range(len(p))]


def blocks_for_one(claims: int) -> int:
    """Return how many blocks can show one effect among so many claims, were it ever so large.

    The signed-rank test of n blocks has no p below 2 / 2^n.
    """
    return max(SMALLEST_SIGNED_RANK, math.ceil(math.log2(2 * claims / USUAL_P)))


POWER = 0.8
SIGNIFICANCE = 1 - CONFIDENCE
EFFICIENCY = 3 / math.pi
MOST_SIMULATED = 24
DRAWS = 5_000
SEED = 20_261_122
MOST_BLOCKS = 10_000
# Effect over standard error from which on the power is 1 at any n (a t table ends at 12.7).
CERTAIN = 100.0


def power(
    log_effect: float, noise: float, blocks: int, significance: float = SIGNIFICANCE
) -> float:
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
    shift, tail = abs(log_effect) / noise, significance / 2
    return _beyond(shift, blocks, tail) + _beyond(-shift, blocks, tail)


def equivalence_power(
    log_effect: float, noise: float, blocks: int, bound: float, significance: float = SIGNIFICANCE
) -> float:
    """Return the chance that both one-sided tests find an effect to be within +- ``bound``.

    From below: both may miss at once, which is counted twice.
    """
    if blocks < 2 or not noise > 0:
        return float(noise == 0 and blocks >= 2 and abs(log_effect) < bound)
    sides = [(bound + sign * log_effect) / noise for sign in (1, -1)]
    return max(0.0, sum(_beyond(side, blocks, significance) for side in sides) - 1)


def blocks_needed(
    log_effect: float,
    noise: float,
    significance: float = SIGNIFICANCE,
    wanted: float = POWER,
    least: int = 2,
) -> int:
    """Return the blocks that find an effect with probability ``wanted``; -1: more than 10,000.

    They are ``least`` blocks or more.
    """
    return _fewest(lambda blocks: power(log_effect, noise, blocks, significance), wanted, least)


def blocks_for_equivalence(
    log_effect: float, noise: float, bound: float, wanted: float = POWER, least: int = 2
) -> int:
    """Return the blocks that find an effect to be within +- ``bound``; as blocks_needed."""
    return _fewest(
        lambda blocks: equivalence_power(log_effect, noise, blocks, bound), wanted, least
    )


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


def noise_range(noise: float, blocks: int, confidence: float = POWER) -> tuple[float, float]:
    """Return the interval of a standard deviation that so many normal blocks have shown."""
    from scipy import stats

    freedom = blocks - 1
    ends = stats.chi2.ppf([(1 + confidence) / 2, (1 - confidence) / 2], freedom)
    low, high = noise * np.sqrt(freedom / ends)
    return float(low), float(high)


def _fewest(power_of: Callable[[int], float], wanted: float, least: int) -> int:
    low = high = least
    while power_of(high) < wanted:
        low, high = high, 2 * high
        if high > MOST_BLOCKS:
            return -1
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle) >= wanted:
            high = middle
        else:
            low = middle
    return high


def _beyond(shift: float, blocks: int, tail: float) -> float:
    """Return the chance that the lower end of an interval lies above 0.

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
    # scipy gives NaN where there is nothing left in a tail.
    return float(np.nan_to_num(stats.nct.sf(critical, effective - 1, centre)))


@lru_cache(maxsize=512)
def _needed_shifts(blocks: int, k: int) -> np.ndarray:
    """Return in order which shift, in units of the noise, each draw needs to be found."""
    noise = np.random.default_rng(SEED).standard_normal((DRAWS, blocks))
    i, j = np.triu_indices(blocks)
    walsh = (noise[:, i] + noise[:, j]) / 2
    return np.sort(-np.partition(walsh, k, axis=1)[:, k])
