"""False alarms and power of a comparison of two treatments, by simulation; seeds are fixed.

Each run is judged by the :func:`~perflab.statistics.comparison.effect_of` that judges real ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from perflab.statistics.comparison import effect_of
from perflab.statistics.two_samples import Rate
from perflab.systems.lab.resolution import BLOCKS, EFFECTS

CALM, DRIFT, OUTLIERS, HEAVY = "calm", "drift", "outliers", "heavy tails"
CONDITIONS = (CALM, DRIFT, OUTLIERS, HEAVY)
# In multiples of a trial's noise: the drift over the whole run, and an outlier; and how many are.
DRIFTS_BY, OFF_BY, OFF_SHARE = 10.0, 5.0, 0.1


def different(
    blocks: int, noise: float, effect: float = 0.0, condition: str = CALM, sets: int = 400
) -> Rate:
    """Return how often runs of ``blocks`` call two treatments different in the right direction.

    Parameters
    ----------
    noise : float
        Standard deviation of one trial's log response beyond treatment and block.
    effect : float
        True relative difference, 0.05 for 5%; with 0 either direction counts.
    condition : str
        ``calm`` (normal noise), ``drift`` (the machine's speed changes by ten times the noise over
        the run), ``outliers`` (one trial in ten is off by five times the noise) or ``heavy tails``
        (Student's t of 3 degrees of the same deviation).
    """
    key = [blocks, round(noise * 1e6), round(effect * 1e6), CONDITIONS.index(condition)]
    random = np.random.default_rng(key)
    hits = 0
    for _ in range(sets):
        logs = drawn_trials(random, blocks, noise, condition)
        measured = effect_of(pd.Series(logs[:, 0] - logs[:, 1] + math.log1p(effect)))
        hits += measured.low > 1 or (effect == 0 and measured.high < 1)
    return Rate(hits, sets)


def drawn_trials(
    random: np.random.Generator, blocks: int, noise: float, condition: str
) -> np.ndarray:
    """Return log responses, shape (blocks, 2)."""
    shape = (blocks, 2)
    order = random.permuted(np.tile([0, 1], (blocks, 1)), axis=1)
    if condition == HEAVY:
        return noise * random.standard_t(3, shape) / math.sqrt(3)
    logs = noise * random.normal(size=shape)
    if condition == DRIFT:
        logs += DRIFTS_BY * noise * (2 * np.arange(blocks)[:, None] + order) / (2 * blocks)
    if condition == OUTLIERS:
        logs += OFF_BY * noise * (random.random(shape) < OFF_SHARE)
    return logs


def power_table(
    noises: Sequence[float],
    effects: Sequence[float] = EFFECTS,
    blocks: Sequence[int] = BLOCKS,
    sets: int = 400,
) -> pd.DataFrame:
    """Return how often true effects are found, by noise and effect (rows) and blocks (columns)."""
    rows = [
        {"noise of a trial": f"{noise:.1%}", "true difference": f"{effect:.0%}", **{
            f"{count} blocks": different(count, noise, effect, CALM, sets) for count in blocks
        }}
        for noise in noises
        for effect in effects
    ]  # fmt: skip
    return pd.DataFrame(rows)


def as_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its rates in words: ``52% [47%, 57%]``."""
    return table.map(lambda cell: _share(cell) if isinstance(cell, Rate) else cell)


def _share(rate: Rate) -> str:
    return f"{rate.hits / rate.n:.0%} {rate.bounds()}"
