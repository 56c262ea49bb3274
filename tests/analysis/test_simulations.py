"""Comparisons held against planted truths: false alarms, power, coverage; seeds are fixed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.decision import Kind, decide
from perflab.statistics.families import blocks_needed
from perflab.statistics.quantiles import across_trials
from tests.statistics.paired import compare


def wilson_upper(hits: int, n: int, z: float = 1.96) -> float:
    p = hits / n
    middle, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle + spread) / (1 + z * z / n)


def run(
    random: np.random.Generator, blocks: int, ratio: float, noise: float, drift: float = 0.0
) -> tuple[pd.Series, pd.Series]:
    """Two treatments in random order within blocks, under a drift over the whole run."""
    order = random.permuted(np.tile([0, 1], (blocks, 1)), axis=1)
    place = (np.arange(blocks)[:, None] * 2 + order) / (2 * blocks)
    logs = drift * place + noise * random.standard_normal((blocks, 2))
    logs[:, 0] += math.log(ratio)
    return pd.Series(np.exp(logs[:, 0])), pd.Series(np.exp(logs[:, 1]))


@pytest.mark.parametrize("blocks", [3, 6, 12])
def test_identical_treatments_are_called_different_in_no_more_than_one_of_twenty(
    blocks: int,
) -> None:
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(600):
        effect = compare(*run(random, blocks, 1.0, 0.1, drift=0.05))
        alarms += effect.low > 1 or effect.high < 1
    assert wilson_upper(alarms, 600) <= 0.09
    assert alarms / 600 <= 0.065


def test_a_shift_of_five_percent_is_found_within_twelve_blocks_at_two_percent_noise() -> None:
    random = np.random.default_rng(2)
    found = sum(compare(*run(random, 12, 1.05, 0.02)).low > 1 for _ in range(300))
    assert found / 300 >= 0.9


@pytest.mark.parametrize(
    ("blocks", "ratio", "noise"), [(4, 1.2, 0.1), (6, 0.8, 0.05), (12, 1.0, 0.2)]
)
def test_intervals_of_ratios_hold_the_truth_as_often_as_they_say(
    blocks: int, ratio: float, noise: float
) -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        effect = compare(*run(random, blocks, ratio, noise))
        held += effect.low <= ratio <= effect.high
    assert held / 1000 >= 0.935


def test_percentiles_across_trials_cover_where_requests_are_autocorrelated() -> None:
    random = np.random.default_rng(4)
    trials, requests, held = 8, 400, 0
    innovations = random.standard_normal((1000, trials, requests))
    series = np.empty_like(innovations)
    series[..., 0] = innovations[..., 0]
    for at in range(1, requests):
        series[..., at] = 0.9 * series[..., at - 1] + math.sqrt(0.19) * innovations[..., at]
    p95 = np.quantile(np.exp(series), 0.95, axis=2)
    truth = float(np.median(np.quantile(np.exp(series), 0.95, axis=2)))
    for one in p95:
        estimate = across_trials(one)
        held += estimate.low <= truth <= estimate.high
    assert held / 1000 >= 0.95


def test_equivalence_is_claimed_wrongly_in_no_more_than_one_of_twenty() -> None:
    random = np.random.default_rng(5)
    # The true difference is exactly the margin: the worst case of the claim.
    wrong = sum(
        decide(effect.by_block, 0.03).kind is Kind.EQUIVALENT
        for effect in (compare(*run(random, 10, 1.03, 0.01)) for _ in range(600))
    )
    assert wilson_upper(wrong, 600) <= 0.09
    right = sum(
        decide(compare(*run(random, 10, 1.0, 0.01)).by_block, 0.03).kind is Kind.EQUIVALENT
        for _ in range(100)
    )
    assert right >= 95


def test_an_undecided_comparison_says_how_many_blocks_would_decide_it() -> None:
    found = decide([0.10, -0.06, 0.12, -0.02, 0.05, 0.01])
    assert found.kind is Kind.UNDECIDED
    least, most = found.blocks
    assert 6 < least < most
    words = f"a fresh run of {least} to {most} blocks would decide it"
    assert found.text == f"{words}, if the difference is the one seen (6 so far)"


def test_the_range_of_blocks_holds_those_that_the_true_noise_needs() -> None:
    random = np.random.default_rng(11)
    truth, held, told = blocks_needed(0.05, 0.08), 0, 0
    for _ in range(150):
        x = 0.08 * random.standard_normal(8)
        # The mean is as it is in truth: the range is that of the noise alone.
        found = decide(x - x.mean() + 0.05)
        if found.kind is Kind.UNDECIDED:
            told += 1
            held += found.blocks[0] <= truth <= found.blocks[1]
    assert told > 60
    assert held / told > 0.75
