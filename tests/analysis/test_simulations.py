"""Comparisons with planted truths: false alarms, power and coverage; seeds are fixed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.decision import Kind, decide
from perflab.statistics.comparison import effect_of
from tests.statistics.paired import compare


def run(
    random: np.random.Generator, blocks: int, ratio: float, noise: float
) -> tuple[pd.Series, pd.Series]:
    """Return the responses of two treatments by block."""
    logs = noise * random.standard_normal((blocks, 2))
    logs[:, 0] += math.log(ratio)
    return pd.Series(np.exp(logs[:, 0])), pd.Series(np.exp(logs[:, 1]))


@pytest.mark.parametrize(
    ("blocks", "ratio", "noise"), [(4, 1.2, 0.1), (6, 0.8, 0.05), (12, 1.0, 0.2)]
)
def test_intervals_of_ratios_hold_the_truth_as_often_as_they_say(
    blocks: int, ratio: float, noise: float
) -> None:
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(1000):
        effect = compare(*run(random, blocks, ratio, noise))
        covered += effect.low <= ratio <= effect.high
    assert covered / 1000 >= 0.935


def test_equivalence_is_claimed_wrongly_in_no_more_than_one_of_twenty() -> None:
    random = np.random.default_rng(5)
    # The true difference is exactly the margin: the worst case of the claim.
    wrong = sum(
        decide(effect, 0.03).kind is Kind.EQUIVALENT
        for effect in (compare(*run(random, 10, 1.03, 0.01)) for _ in range(600))
    )
    assert wrong / 600 <= 0.065
    right = sum(
        decide(compare(*run(random, 10, 1.0, 0.01)), 0.03).kind is Kind.EQUIVALENT
        for _ in range(100)
    )
    assert right >= 95


def test_an_undecided_comparison_says_how_many_blocks_would_decide_it() -> None:
    decision = decide(effect_of(pd.Series([0.10, -0.06, 0.12, -0.02, 0.05, 0.01])))
    assert decision.kind is Kind.UNDECIDED
    least, most = decision.blocks
    assert 6 < least < most
    words = f"a fresh run of {least} to {most} blocks would decide it"
    assert decision.text == f"{words}, if the difference is the one seen (6 so far)"
