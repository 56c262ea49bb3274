"""Does correcting for the CPU's speed keep the level, cover, and pay? By simulation.

Response and probe follow the machine's speed, which wanders from block to block and within. One
treatment slows the machine down while its load runs (a hot core, pages in memory, a debt of CPU
quota), so that a probe after the load answers to the treatment. Level: how often equal treatments
are called different. Coverage: how often a true ratio of 1.2 lies in the interval. Width: of the
interval with the correction against that without, where it was used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perflab.analysis.covariate import fitted, priced
from perflab.analysis.evaluation import COVARIATE
from perflab.statistics.comparison import mean_interval

BEFORE, AFTER, MEAN = "cpu_probe_before_ms", "cpu_probe_after_ms", "mean of both"
NOISE, SPEED, RATIO = 0.1, 0.1, 1.2


@dataclass(frozen=True)
class Case:
    """Trials of ``treatments`` in ``blocks``; ``follows`` is the correlation with the speed.

    ``slowed`` is what the first treatment does to a probe after its load, on logs; ``tails``
    gives Student's t of 3 degrees in place of normal noise.
    """

    treatments: int
    blocks: int
    follows: float
    slowed: float = 0.0
    tails: bool = False


@dataclass(frozen=True)
class Shares:
    """What was found of a case; ``width`` is NaN where the covariate was never used."""

    level: float
    coverage: float
    used: float
    width: float


def simulated(case: Case, sets: int, seed: int = 1, covariate: str = COVARIATE) -> Shares:
    """Draw runs of equal treatments and compare the first two as the lab does."""
    random = np.random.default_rng(seed)
    treatment = np.tile(np.arange(case.treatments), case.blocks)
    block = np.repeat(np.arange(case.blocks), case.treatments)
    inside = used = 0
    widths = []
    for _ in range(sets):
        columns, logs = _drawn(random, case)
        probe = columns[covariate]
        found = fitted(covariate, np.column_stack([probe.ravel(), logs.ravel()]), treatment, block)
        # What is planted moves every block alike, and neither slope nor width.
        plain = adjusted = logs[:, 0] - logs[:, 1] + math.log(RATIO)
        if found.used:
            adjusted = priced(plain, probe[:, 0] - probe[:, 1], found, weight=2.0)
        interval, without = mean_interval(adjusted), mean_interval(plain)
        inside += interval.low <= math.log(RATIO) <= interval.high
        if found.used:
            used += 1
            widths.append((interval.high - interval.low) / (without.high - without.low))
    # As the planted ratio moves all alike, the level is what coverage leaves.
    coverage = inside / sets
    width = float(np.mean(widths)) if widths else math.nan
    return Shares(1 - coverage, coverage, used / sets, width)


def _drawn(random: np.random.Generator, case: Case) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return logs of the probes by column and of the response, shape (blocks, treatments)."""
    shape = (case.blocks, case.treatments)
    first = np.arange(case.treatments) == 0
    own = random.standard_t(3, shape) / math.sqrt(3) if case.tails else random.normal(size=shape)
    wandering = np.cumsum(0.1 * random.normal(size=(case.blocks, 1)), axis=0)
    within = random.normal(size=shape)
    speed = wandering + SPEED * within
    rest = math.sqrt(1 - case.follows**2)
    logs = wandering - NOISE * (case.follows * within - rest * own)
    after = speed + case.slowed * first + 0.02 * random.normal(size=shape)
    return {BEFORE: speed, AFTER: after, MEAN: (speed + after) / 2}, logs
