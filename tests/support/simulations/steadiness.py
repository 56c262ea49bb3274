"""Loads that drift or stir, simulated, and what the rule over blocks says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.checks.trend import WINDOWS, is_clear, log_trend
from perflab.recordings.steadiness import GROSS_TREND, SMALLEST_N, over_blocks
from perflab.statistics.comparison import effect_of
from perflab.statistics.two_samples import Rate

SETS = 400
BLOCKS = (4, 6, 8, 12)
DRIFTS = (0.0, 0.05, 0.10, 0.20, 0.40)
# What a machine does to the medians of a load's windows: each is off by its own, and the speed
# wanders from window to window, with the tails of Student's t of 3 degrees.
OWN_NOISE, LEVEL_NOISE = 0.03, 0.03
CALM, STIRRED, WILD = "calm", "stirred", "wild"
MACHINES = {CALM: 0.01, STIRRED: 0.03, WILD: 0.06}


@dataclass(frozen=True)
class Loads:
    """Simulated loads: the logs of the medians of their windows, along the last axis."""

    log_middles: np.ndarray

    @property
    def trends(self) -> np.ndarray:
        """Return their log trends."""
        return log_trend(self.log_middles)

    @property
    def levels(self) -> np.ndarray:
        """Return the logs of what their mean response times would be."""
        levels: np.ndarray = np.log(np.exp(self.log_middles).mean(axis=-1))
        return levels

    def beyond(self, factor: float) -> np.ndarray:
        """Return which have a clear trend beyond a factor."""
        beyond: np.ndarray = is_clear(self.log_middles) & (np.abs(self.trends) > math.log(factor))
        return beyond


def loads(
    random: np.random.Generator, shape: tuple[int, ...], wander: float, drift: float = 0.0
) -> Loads:
    """Draw loads that settle at a log response time of 0, and begin ``drift`` above it."""
    steps = wander * random.standard_t(3, (*shape, WINDOWS)) / math.sqrt(3)
    walk = np.cumsum(steps, axis=-1)
    walk -= walk.mean(axis=-1, keepdims=True)
    level = LEVEL_NOISE * random.standard_normal((*shape, 1))
    noise = level + OWN_NOISE * random.standard_normal((*shape, WINDOWS))
    return Loads(walk + noise + math.log1p(drift) * np.linspace(1, 0, WINDOWS))


def refused(blocks: int, drift: float, machine: str = STIRRED, sets: int = SETS) -> Rate:
    """Return how often a treatment whose loads drift so is refused."""
    drawn = loads(drawn_from(blocks, drift, machine), (sets, blocks), MACHINES[machine], drift)
    return Rate(sum(over_blocks(own).refused for own in drawn.trends), sets)


def called_different(blocks: int, drift: float, sets: int = SETS) -> Rate:
    """Return how often treatments that settle alike, of which one drifts, are called different."""
    random = drawn_from(blocks, drift, STIRRED)
    sides = [loads(random, (sets, blocks), MACHINES[STIRRED], each) for each in (0.0, drift)]
    gross = [side.beyond(math.exp(GROSS_TREND)) for side in sides]
    hits = 0
    for run in range(sets):
        if any(over_blocks(side.trends[run]).refused for side in sides):
            continue
        kept = ~(gross[0][run] | gross[1][run])
        hits += differ((sides[1].levels - sides[0].levels)[run][kept])
    return Rate(hits, sets)


def differ(log_ratios: np.ndarray, above: bool = False) -> bool:
    if len(log_ratios) < SMALLEST_N:
        return False
    effect = effect_of(pd.Series(log_ratios))
    return effect.low > 1 or (not above and effect.high < 1)


def drawn_from(blocks: int, drift: float, machine: str) -> np.random.Generator:
    return np.random.default_rng([blocks, round(drift * 1e6), list(MACHINES).index(machine)])
