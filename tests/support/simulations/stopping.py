"""Runs that are looked at until all is decided, simulated: what they err."""

from __future__ import annotations

import numpy as np

from perflab.recordings import UntilDecided
from perflab.statistics import signed_rank
from perflab.statistics.interim_analysis import ending_sums, going_on, planned
from perflab.trials.run_parameters import RunParameters
from tests.support.simulations.differences import CONDITIONS, drawn_trials
from tests.support.simulations.verdicts import ever_shown

LEAST, MOST = (
    int(RunParameters.model_fields[name].default) for name in ("least_blocks", "most_blocks")
)
RULE = planned(LEAST, MOST)
GROWING, STEPS = "noise that grows tenfold", "steps far above the noise"
KINDS = (*CONDITIONS, GROWING, STEPS)
NOISE = 0.05


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
