"""How often a drift of the machine makes blocks, or runs, of equal treatments differ.

Through ``mirrored_orders`` and ``effect_of`` for blocks, ``compared`` for runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from perflab.analysis.between_runs import compared
from perflab.statistics.comparison import effect_of
from perflab.statistics.two_samples import Rate

# How much of the drift there is after a share of the time.
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda time: time,
    "settling": lambda time: (1 - np.exp(-5 * time)) / (1 - np.exp(-5)),
}
Orders = Callable[[Sequence[str], int, int], list[list[str]]]


def drifting(
    random: np.random.Generator, count: int, shape: str, drift: float, noise: float
) -> np.ndarray:
    """Return the log responses of ``count`` equal trials, or runs, one after the other."""
    time = (np.arange(count) + 0.5) / count
    return np.log1p(drift * SHAPES[shape](time)) + noise * random.standard_normal(count)


def false_alarms(
    random: np.random.Generator,
    order: str,
    shape: str,
    drift: float,
    noise: float,
    sets: int,
    truth: float = 1.0,
) -> Rate:
    """Return how often runs in this order (``ABBA``) are certainly different."""
    is_b = np.array([side == "B" for side in order])
    hits = 0
    for _ in range(sets):
        logs = drifting(random, len(order), shape, drift, noise) + np.log(truth) * is_b
        _, low, high, _ = compared(*(list(logs[chosen, None]) for chosen in (~is_b, is_b)))
        hits += low > 0 or high < 0
    return Rate(hits, sets)


def block_alarms(
    random: np.random.Generator,
    orders: Orders,
    treatments: int,
    blocks: int,
    shape: str,
    drift: float,
    noise: float,
    sets: int,
    truth: float = 1.0,
) -> Rate:
    """Return how often two of some treatments are certainly different after so many blocks."""
    names = [str(number) for number in range(treatments)]
    hits = 0
    for _ in range(sets):
        order = orders(names, int(random.integers(2**31)), blocks)
        trials = drifting(random, blocks * treatments, shape, drift, noise)
        by_block = [
            np.log(truth) + of_block[one.index("1")] - of_block[one.index("0")]
            for one, of_block in zip(order, trials.reshape(blocks, treatments), strict=True)
        ]
        effect = effect_of(pd.Series(by_block))
        hits += effect.low > 1 or effect.high < 1
    return Rate(hits, sets)
