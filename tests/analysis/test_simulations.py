"""Comparisons with planted truths: false alarms, power and coverage; seeds are fixed."""

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
    """Return two treatments in random order within blocks, with a drift over the whole run."""
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
    hits = sum(compare(*run(random, 12, 1.05, 0.02)).low > 1 for _ in range(300))
    assert hits / 300 >= 0.9


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


def test_percentiles_across_trials_cover_where_requests_are_autocorrelated() -> None:
    random = np.random.default_rng(4)
    trials, requests, covered = 8, 400, 0
    innovations = random.standard_normal((1000, trials, requests))
    series = np.empty_like(innovations)
    series[..., 0] = innovations[..., 0]
    for request in range(1, requests):
        series[..., request] = (
            0.9 * series[..., request - 1] + math.sqrt(0.19) * innovations[..., request]
        )
    p95 = np.quantile(np.exp(series), 0.95, axis=2)
    truth = float(np.median(np.quantile(np.exp(series), 0.95, axis=2)))
    for values in p95:
        estimate = across_trials(values)
        covered += estimate.low <= truth <= estimate.high
    assert covered / 1000 >= 0.95


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
    decision = decide([0.10, -0.06, 0.12, -0.02, 0.05, 0.01])
    assert decision.kind is Kind.UNDECIDED
    least, most = decision.blocks
    assert 6 < least < most
    words = f"a fresh run of {least} to {most} blocks would decide it"
    assert decision.text == f"{words}, if the difference is the one seen (6 so far)"


def test_the_range_of_blocks_holds_those_that_the_true_noise_needs() -> None:
    random = np.random.default_rng(11)
    truth, covered, undecided_runs = blocks_needed(0.05, 0.08), 0, 0
    for _ in range(150):
        x = 0.08 * random.standard_normal(8)
        # The mean is the true one: the range is that of the noise alone.
        decision = decide(x - x.mean() + 0.05)
        if decision.kind is Kind.UNDECIDED:
            undecided_runs += 1
            covered += decision.blocks[0] <= truth <= decision.blocks[1]
    assert undecided_runs > 60
    assert covered / undecided_runs > 0.75
