"""Runs that are looked at until all is decided, simulated: what they err, and when they end.

The intervals of many runs are worked out at once; ``tests/statistics/test_repeated_looks.py`` shows
that they are those of ``effect_of``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from perflab.analysis.findings import OPEN
from perflab.analysis.verdict import judge
from perflab.recordings import Contrast, UntilDecided
from perflab.statistics import signed_rank
from perflab.statistics.comparison import Effect
from perflab.statistics.interim_analysis import ending_sums, going_on, planned
from perflab.trials.experiment import RunParameters
from tests.support.simulations.differences import CONDITIONS, drawn_trials
from tests.support.simulations.verdicts import claim as claim_of
from tests.support.simulations.verdicts import ever_shown

LEAST, MOST = (
    int(RunParameters.model_fields[name].default) for name in ("least_blocks", "most_blocks")
)
RULE = planned(LEAST, MOST)
GROWING, STEPS = "noise that grows tenfold", "steps far above the noise"
KINDS = (*CONDITIONS, GROWING, STEPS)
NOISE = 0.05
# Runs are simulated up to here.
LONGEST = 40
PUBLISHED = 1.6


def looks_of(rule: UntilDecided) -> list[int]:
    """Return after how many blocks a rule may look."""
    return [look.blocks for look in rule.plan]


def equal(random: np.random.Generator, kind: str, sets: int) -> np.ndarray:
    """Return log ratios between equal treatments, shape (sets, MOST)."""
    shape = (sets, MOST)
    if kind == GROWING:
        return NOISE * np.geomspace(1, 10, MOST) * random.standard_normal(shape)
    if kind == STEPS:
        # A machine that gets slower with every trial: all that a block has is its order's sign.
        sign = random.choice([-1.0, 1.0], shape)
        return sign * (20 * NOISE) + NOISE * random.standard_normal(shape)
    trials = np.stack([drawn_trials(random, MOST, NOISE, kind) for _ in range(sets)])
    found: np.ndarray = trials[:, :, 0] - trials[:, :, 1]
    return found


def errors(random: np.random.Generator, kind: str, sets: int) -> tuple[float, float, float]:
    """Return how often equal treatments ever differ.

    By the usual test after every block, by the usual test at the looks of the rule, by the rule.
    """
    logs = equal(random, kind, sets)
    usual = {n: signed_rank.critical(n, 0.025)[0] + 1 for n in range(LEAST, MOST + 1)}
    own = dict(zip(looks_of(RULE), lowest_sums(RULE, 0.05), strict=True))
    at_looks = {n: usual[n] for n in own}
    return ever_shown(logs, usual), ever_shown(logs, at_looks), ever_shown(logs, own)


def lowest_sums(rule: UntilDecided, error: float) -> list[int]:
    """Return for each look how many of the lowest sums show a difference."""
    looks, shares = looks_of(rule), tuple(look.share for look in rule.plan)
    return list(ending_sums(error, tuple(looks), shares))


def error_of_all(counts: tuple[int, ...], sums: tuple[int, ...]) -> float:
    """Return how often equal treatments differ at some look, if these sums end a run."""
    ended = (
        2 * float(going_on(counts[:look], sums[: look - 1])[:own].sum())
        for look, own in enumerate(sums, start=1)
    )
    return min(1.0, sum(ended))


def claim() -> Contrast:
    """Return the claim whose decision is simulated."""
    return claim_of(published_ratio=PUBLISHED, published_direction="greater")


@dataclass(frozen=True)
class Cost:
    """How often a rule decided a claim, and after how many blocks on average."""

    decided: float
    blocks: float


def simulated(random: np.random.Generator, truth: float, noise: float, sets: int) -> np.ndarray:
    """Return log ratios of runs, shape (sets, LONGEST)."""
    trials = noise * random.standard_normal((sets, LONGEST, 2))
    found: np.ndarray = math.log(truth) + trials[:, :, 0] - trials[:, :, 1]
    return found


@dataclass
class Place:
    """Many runs with one truth and one noise, and what is known of their decisions."""

    logs: np.ndarray
    _known: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict)

    def decided(self, blocks: int, wide: int, narrow: int) -> np.ndarray:
        """Say of each run whether these blocks decide the claim.

        ``wide`` and ``narrow`` are how many of the lowest sums the tests of the 95% and the 90%
        interval reject.
        """
        key = (blocks, wide, narrow)
        if key not in self._known:
            averages = all_averages(self.logs[:, :blocks])
            claimed = claim()
            ends = zip(*(ends_of(averages, lowest) for lowest in (wide, narrow)), strict=True)
            self._known[key] = np.array(
                [judge(_effect(blocks, *each), claimed).outcome not in OPEN for each in ends]
            )
        return self._known[key]


def all_averages(logs: np.ndarray) -> np.ndarray:
    """Return the sorted Walsh averages of each run: shape (runs, n (n + 1) / 2)."""
    i, j = np.triu_indices(logs.shape[1])
    return np.sort((logs[:, i] + logs[:, j]) / 2, axis=1)


def ends_of(averages: np.ndarray, lowest: int) -> list[tuple[float, float]]:
    """Return both ends of each run's interval; NaN where no sum is rejected."""
    if not lowest:
        return [(math.nan, math.nan)] * len(averages)
    low, high = averages[:, lowest - 1], averages[:, -lowest]
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _effect(blocks: int, wide: tuple[float, float], narrow: tuple[float, float]) -> Effect:
    low, high, inner_low, inner_high = (math.exp(end) for end in (*wide, *narrow))
    return Effect(
        math.nan, low, high, 0.95, blocks, math.nan,
        narrow_low=inner_low, narrow_high=inner_high,
    )  # fmt: skip


def by_rule(place: Place, rule: UntilDecided) -> Cost:
    """Return what runs come to that end once the claim is decided."""
    looks = looks_of(rule)
    ended = np.full(len(place.logs), rule.most_blocks)
    going_on = np.ones(len(place.logs), dtype=bool)
    wide, narrow = (lowest_sums(rule, error) for error in (0.05, 0.10))
    for blocks, *lowest in zip(looks, wide, narrow, strict=True):
        now = going_on & place.decided(blocks, *lowest)
        ended[now] = blocks
        going_on &= ~now
    return Cost(1 - float(going_on.mean()), float(ended.mean()))
