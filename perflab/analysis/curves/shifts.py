"""Does the level of a short series shift, and where? A test that keeps its level.

The values are independent, each spread symmetrically around its level, as log ratios are: each with
a spread of its own, since some runs have few blocks and some nights are noisy. Tests that permute
the values need equal spreads: where the first fifth scatters five times as much, a permutation
CUSUM calls 28 to 35% of 20 to 30 values without a shift shifted, and one of ranks 17 to 18%
(``benchmarks/shifts.py``).

So values half a series apart are paired, and their differences d flip signs. Without a shift each d
is symmetric around 0 whatever the two spreads, and every pattern of signs is as likely as any other
(R. A. Fisher, The Design of Experiments, 1935, section 21): the test is exact. The statistic is the
largest, over all places of a shift, of the signed-rank sum (F. Wilcoxon, Biometrics Bull. 1, 1945)
of the pairs that such a shift lies between, in its deviations. Every pair is used at a shift in the
middle, where nothing is lost against two samples; towards the ends there are fewer, and six are the
fewest that can reach 5%. Hence: twelve values at least, and a shift is seldom found before six
values or more lie on either side of it. Further shifts are looked for in the parts (binary
segmentation, L. J. Vostrikova, Soviet Math. Dokl. 24, 1981), each at its share of the level: the
parts without a shift of their own do not overlap, so that their false alarms stay within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

LEVEL = 0.05
# 2 of the 2^6 patterns of signs are as one-sided as six signs that agree: p = 0.031.
FEWEST_PAIRS = 6
ENOUGH = 2 * FEWEST_PAIRS
# A level is placed by three values at least: one or two are outliers.
SMALLEST_PART = 3
ENUMERATED = 14
DRAWN = 9_999
ROUNDING = 1e-9


@dataclass(frozen=True)
class Shift:
    """A shift of the level: the place of the first value after it, and the p-value of its test."""

    place: int
    p_value: float


def level_shifts(x: np.ndarray, level: float = LEVEL) -> list[Shift]:
    """Return where the level of a series shifts, in order; none of fewer than 12 values.

    Parameters
    ----------
    x : array, shape (n,)
        Finite, independent values in their order, such as log ratios of runs.
    level : float
        At most so often is any shift found where there is none.
    """
    found: list[Shift] = []
    parts = [(0, len(x))]
    while parts:
        begin, end = parts.pop()
        part = x[begin:end]
        if len(part) < ENOUGH:
            continue
        p_value = shift_p(part)
        if p_value <= level * len(part) / len(x):
            place = begin + likeliest(part)
            found.append(Shift(place, p_value))
            parts += [(begin, place), (place, end)]
    return sorted(found, key=lambda shift: shift.place)


def shift_p(x: np.ndarray) -> float:
    """Return the p-value of "the level never shifts"; 1 of fewer than 12 values."""
    n = len(x)
    if n < ENOUGH:
        return 1.0
    pairs, apart = n // 2, n - n // 2
    differences = x[apart:] - x[:pairs]
    scores = stats.rankdata(np.abs(differences)) * (differences != 0)
    # A shift before `place` lies between the two values of these pairs.
    places = np.arange(FEWEST_PAIRS, n - FEWEST_PAIRS + 1)
    first, last = np.maximum(0, places - apart), np.minimum(pairs, places)
    deviations = np.sqrt(_between(scores**2, first, last))
    used = deviations > 0
    if not used.any():
        return 1.0

    def statistic(signs: np.ndarray) -> np.ndarray:
        sums = _between(signs * scores, first[used], last[used])
        largest: np.ndarray = np.abs(sums / deviations[used]).max(axis=-1)
        return largest

    observed = statistic(np.sign(differences)[None, :])[0] - ROUNDING
    others = statistic(_signs(pairs))
    as_large = int((others >= observed).sum())
    # All patterns are there, or drawn ones, to which the observed one is added.
    return as_large / len(others) if pairs <= ENUMERATED else (as_large + 1) / (len(others) + 1)


def likeliest(x: np.ndarray) -> int:
    """Return the place of the first value after the one shift that explains most squares."""
    places = np.arange(SMALLEST_PART, len(x) - SMALLEST_PART + 1)
    sums = np.cumsum(x - x.mean())[places - 1]
    return int(places[np.argmax(sums**2 / (places * (len(x) - places)))])


def _between(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the sums of ``values[..., first:last]``, one for each pair of places."""
    none = np.zeros((*values.shape[:-1], 1))
    sums = np.concatenate([none, np.cumsum(values, axis=-1)], axis=-1)
    found: np.ndarray = sums[..., last] - sums[..., first]
    return found


@lru_cache(maxsize=8)
def _signs(pairs: int) -> np.ndarray:
    """Return patterns of signs, shape (patterns, pairs): all there are, or the same drawn ones."""
    if pairs <= ENUMERATED:
        bits = np.arange(2**pairs)[:, None] >> np.arange(pairs) & 1
        return 2 * bits - 1
    drawn = np.random.default_rng(pairs).integers(0, 2, (DRAWN, pairs), dtype=np.int8)
    return 2 * drawn - 1
