"""Which verdict a simulated run comes to: trials with log-normal noise, judged as a run judges.

Two treatments in random blocks, through ``effect_of``, ``corrected`` and ``judge``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.results import AgainstStudy, Result
from perflab.analysis.verdict import judge
from perflab.recordings import Contrast
from perflab.statistics.comparison import Effect, effect_of
from perflab.statistics.families import corrected
from perflab.statistics.signed_rank import critical

PUBLISHED: dict[str, dict[str, Any]] = {
    "1.6": {"published_ratio": 1.6, "published_direction": "greater"},
    "1.1": {"published_ratio": 1.1, "published_direction": "greater"},
    "no effect": {"published_direction": "none"},
}
# The results that tell a direction, of a claim without a size.
TOLD = (AgainstStudy.IN_DIRECTION, AgainstStudy.OTHER_WAY)
FAMILY_NOISE, FAMILY_TRUTH = 0.08, 1.3
FIRST_LOOK, LAST_LOOK = 6, 30


def claim(**published: Any) -> Contrast:
    """Return a contrast of which that was published, or with other changes."""
    sides = {"numerator": {"v": "b"}, "denominator": {"v": "a"}}
    fields: dict[str, Any] = {"response": "throughput_rps", "source": "simulated", **published}
    return Contrast(name="c", claim="c", **{**sides, **fields})


def effects(
    random: np.random.Generator, sets: int, blocks: int, truth: float, noise: float
) -> Iterator[Effect]:
    """Return the effects of simulated runs whose trials have this noise."""
    trials = noise * random.standard_normal((sets, blocks, 2))
    for one in math.log(truth) + trials[:, :, 0] - trials[:, :, 1]:
        yield effect_of(pd.Series(one))


def verdicts(
    random: np.random.Generator, sets: int, blocks: int, truth: float, noise: float
) -> dict[str, Counter[Result]]:
    """Return how often each verdict was given, by what was published."""
    claims = {name: claim(**published) for name, published in PUBLISHED.items()}
    counts: dict[str, Counter[Result]] = {name: Counter() for name in claims}
    for effect in effects(random, sets, blocks, truth, noise):
        for name, contrast in claims.items():
            counts[name][judge(effect, contrast).result] += 1
    return counts


@dataclass(frozen=True)
class Level:
    """What a family of claims comes to: shares over simulated runs.

    ``false_share`` of the directions told (shown or opposite) are of no effect at all, on average
    over the runs; ``any_false`` of the runs tell at least one such; ``found`` of the true effects
    are shown.
    """

    false_share: float
    any_false: float
    found: float


def family_level(
    random: np.random.Generator, sets: int, blocks: int, claims: int, true: int
) -> Level:
    """Simulate runs of several claims, the first ``true`` of which hold."""
    contrast = claim(published_direction="greater")
    false_share = any_false = found = 0.0
    for _ in range(sets):
        told = [
            next(effects(random, 1, blocks, FAMILY_TRUTH if at < true else 1.0, FAMILY_NOISE))
            for at in range(claims)
        ]
        among = corrected([effect.p_value for effect in told])
        results = [judge(one, contrast, own).result for one, own in zip(told, among, strict=True)]
        ways = [result if result in TOLD else None for result in results]
        wrong = sum(way is not None for way in ways[true:])
        said = sum(way is not None for way in ways)
        false_share += wrong / max(1, said)
        any_false += wrong > 0
        found += sum(way is AgainstStudy.IN_DIRECTION for way in ways[:true])
    power = found / (sets * true) if true else math.nan
    return Level(false_share / sets, any_false / sets, power)


def ever_shown(logs: np.ndarray, sums: dict[int, int]) -> float:
    """Return in how many sets some look, after so many blocks, has a sum among the so many lowest.

    Or among the so many highest.
    """
    ever = np.zeros(len(logs), dtype=bool)
    for blocks, lowest in sums.items():
        own = logs[:, :blocks]
        ranks = np.argsort(np.argsort(np.abs(own), axis=1), axis=1) + 1
        above = (ranks * (own > 0)).sum(axis=1)
        ever |= np.minimum(above, blocks * (blocks + 1) // 2 - above) < lowest
    return float(ever.mean())


def false_alarms_of_peeking(random: np.random.Generator, sets: int) -> tuple[float, float]:
    """Return how often identical treatments differ at the last look alone, and at any look."""
    noise = random.standard_normal((sets, LAST_LOOK))
    usual = {n: critical(n, 0.025)[0] + 1 for n in range(FIRST_LOOK, LAST_LOOK + 1)}
    return ever_shown(noise, {LAST_LOOK: usual[LAST_LOOK]}), ever_shown(noise, usual)
