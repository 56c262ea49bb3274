"""Simulated blocks whose response times drift over the load, and what a comparison says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.scope import extended
from perflab.load.checks.trend import WINDOWS, to_its_end
from perflab.statistics.comparison import effect_of
from perflab.statistics.two_samples import Rate

# Standard deviations of logs: of a trial, of its change over the load (both are the machine's), and
# of a window.
OF_TRIALS, OF_CHANGES, OF_WINDOWS = 0.02, 0.05, 0.05


@dataclass(frozen=True)
class Drift:
    """By which share both sides fall over their loads: evenly, or at first and then no more."""

    one: float = 0.0
    other: float = 0.0
    settles: bool = False

    def log_ratio(self) -> np.ndarray:
        """Return the true log ratio in each window, if both sides are equal at the begin."""
        at = np.linspace(0, 1, WINDOWS)
        shape = 1 - np.exp(-5 * at) if self.settles else at
        ratio: np.ndarray = math.log1p(-self.one) * shape - math.log1p(-self.other) * shape
        return ratio


@dataclass(frozen=True)
class Held:
    """How often intervals hold the ratio of the load, and extended ones that of its end."""

    load: Rate
    end: Rate


def blocks_of(random: np.random.Generator, blocks: int, drift: Drift, ratio: float) -> np.ndarray:
    """Return the log ratios of the windows of each block, shape (blocks, windows)."""
    around_middle = np.linspace(-0.5, 0.5, WINDOWS)
    both_sides = math.sqrt(2)
    of_trials = both_sides * OF_TRIALS * random.standard_normal((blocks, 1))
    of_changes = both_sides * OF_CHANGES * random.standard_normal((blocks, 1))
    of_windows = both_sides * OF_WINDOWS * random.standard_normal((blocks, WINDOWS))
    true = math.log(ratio) + drift.log_ratio()
    drawn: np.ndarray = true + of_trials + of_changes * around_middle + of_windows
    return drawn


def held(random: np.random.Generator, sets: int, blocks: int, drift: Drift) -> Held:
    """Return how often the intervals of simulated runs hold what they are for."""
    true = drift.log_ratio()
    of_load = of_end = 0
    for _ in range(sets):
        drawn = blocks_of(random, blocks, drift, 1.0)
        effect = effect_of(pd.Series(drawn.mean(axis=1)))
        longer = extended(effect, [to_its_end(row) for row in drawn])
        of_load += effect.low <= math.exp(true.mean()) <= effect.high
        of_end += longer.low <= math.exp(true[-1]) <= longer.high
    return Held(Rate(of_load, sets), Rate(of_end, sets))
