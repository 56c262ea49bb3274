"""What runs that judge several responses tell of effects that are none, by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.verdict import judge
from perflab.statistics.comparison import effect_of
from perflab.statistics.families import corrected
from tests.support.simulations.verdicts import TOLD, claim

RESPONSES, STEPS, STEP_BLOCKS, STEP_NOISE, STEP_EFFECT = 4, 6, 8, 0.08, 0.30


@dataclass(frozen=True)
class Told:
    """What simulated runs told of no effect: an entry for each run.

    ``share`` and ``any_false`` are over all responses, ``own_share`` and ``own_any`` of one of them
    (shape: runs, responses).
    """

    share: np.ndarray
    any_false: np.ndarray
    own_share: np.ndarray
    own_any: np.ndarray


def told_of_nothing(correlation: float, true_steps: int, sets: int) -> Told:
    """Simulate runs of a ladder whose first steps are true, and judge all their claims.

    ``correlation`` is that of the noise of two responses within a trial.
    """
    random = np.random.default_rng([round(correlation * 100), true_steps])
    wrong, said = np.zeros((2, sets, RESPONSES))
    for run in range(sets):
        steps = _steps(random, correlation, true_steps)
        is_told = _told(steps)
        wrong[run], said[run] = is_told[:, true_steps:].sum(axis=1), is_told.sum(axis=1)
    return Told(
        wrong.sum(axis=1) / np.maximum(1, said.sum(axis=1)),
        wrong.sum(axis=1) > 0,
        wrong / np.maximum(1, said),
        wrong > 0,
    )


def _steps(random: np.random.Generator, correlation: float, true_steps: int) -> np.ndarray:
    """Return log ratios, shape (responses, steps, blocks); neighbouring steps share a trial."""
    shape = (STEPS + 1, STEP_BLOCKS)
    common = math.sqrt(correlation) * random.standard_normal(shape)
    own = math.sqrt(1 - correlation) * random.standard_normal((RESPONSES, *shape))
    steps: np.ndarray = np.diff(STEP_NOISE * (common + own), axis=1)
    steps[:, :true_steps] += math.log1p(STEP_EFFECT)
    return steps


def _told(steps: np.ndarray) -> np.ndarray:
    """Return which claims a direction is told of, shape (responses, steps), as a run does."""
    names = [f"response {number}" for number in range(RESPONSES) for _ in range(STEPS)]
    effects = [effect_of(pd.Series(each)) for own in steps for each in own]
    among = corrected([each.p_value for each in effects], names)
    judged = [
        judge(effect, claim(response=name, published_direction="greater"), own)
        for effect, name, own in zip(effects, names, among, strict=True)
    ]
    told = [each.result in TOLD for each in judged]
    return np.array(told).reshape(RESPONSES, STEPS)
