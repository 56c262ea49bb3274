"""What is independent: trials, or blocks of windows where there are few trials.

Windows of one trial are autocorrelated, so sums over whole trials (or long blocks) stand for them,
and the distribution of a sum of scores comes from flipping the signs of whole clusters: the score
bootstrap of P. Kline, A. Santos, J. Econom. Methods 1, 2012, with Rademacher weights (A. C.
Cameron, J. B. Gelbach, D. L. Miller, Rev. Econ. Stat. 90, 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

ENOUGH_TRIALS = 8
WANTED_BLOCKS = 16
SMALLEST_BLOCK = 10
DRAWS = 1999


@dataclass(frozen=True)
class Clusters:
    """Which cluster and which level each window belongs to.

    ``cluster`` and ``level`` are numbers from 0, not falling, shape (windows,). Where clusters are
    trials they share one level. Where they are blocks each trial has a level of its own: blocks of
    one trial share what makes it differ from others.
    """

    cluster: np.ndarray
    level: np.ndarray
    of_trials: bool

    @property
    def count(self) -> int:
        """Return how many clusters there are."""
        return int(self.cluster[-1]) + 1

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return sums per cluster, shape (count, k), of values of shape (windows, k)."""
        total: np.ndarray = np.add.reduceat(values, _begins(self.cluster), axis=0)
        return total

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Return values of shape (windows, k) less the means of their levels."""
        counts = np.bincount(self.level)
        means = np.add.reduceat(values, _begins(self.level), axis=0) / counts[:, None]
        centred: np.ndarray = values - means[self.level]
        return centred


def _begins(ordered: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def clusters(trial: np.ndarray) -> Clusters | None:
    """Return the clusters of windows that lie in order, trial after trial; None if too few.

    Parameters
    ----------
    trial : array, shape (windows,)
        Number of each window's trial, 0, 1, ... without gaps and not falling.
    """
    if not len(trial):
        return None
    sizes = np.bincount(trial)
    if len(sizes) >= ENOUGH_TRIALS:
        return Clusters(trial, np.zeros_like(trial), of_trials=True)
    per_trial = math.ceil(WANTED_BLOCKS / len(sizes))
    parts = np.minimum(per_trial, np.maximum(1, sizes // SMALLEST_BLOCK))
    if parts.sum() < ENOUGH_TRIALS:
        return None
    block = np.concatenate(
        [np.arange(size) * part // size for size, part in zip(sizes, parts, strict=True)]
    )
    first = np.cumsum(parts) - parts
    return Clusters(first[trial] + block, trial, of_trials=False)


@lru_cache(maxsize=32)
def signs(count: int, draws: int = DRAWS, seed: int = 20_260_102) -> np.ndarray:
    """Return drawn signs, shape (draws, count), from a fixed seed."""
    drawn = np.random.default_rng(seed).integers(0, 2, (draws, count))
    flipped: np.ndarray = (1 - 2 * drawn).astype(float)
    return flipped
