"""Interim analyses: the error of all looks together holds for any noise, order and gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from perflab.statistics.comparison import effect_of
from perflab.statistics.interim_analysis import ending_sums, planned
from tests.support.simulations.stopping import KINDS, RULE, error_of_all, errors

# Looks at runs that are short enough to try all signs.
COUNTS, SHARES = (6, 8, 11), (0.65, 0.15, 0.2)
SIGNS = 1 - 2 * ((np.arange(2**11)[:, None] >> np.arange(11)) & 1)


def error_by_trying(sizes: np.ndarray, sums: tuple[int, ...]) -> float:
    """Return the error of all looks at blocks of these sizes, by trying all signs."""
    ever = np.zeros(len(SIGNS), dtype=bool)
    for n, lowest in zip(COUNTS, sums, strict=True):
        ranks = np.argsort(np.argsort(sizes[:n])) + 1
        above = (SIGNS[:, :n] > 0) @ ranks
        ever |= np.minimum(above, n * (n + 1) // 2 - above) < lowest
    return float(ever.mean())


@pytest.mark.parametrize("error", [0.05, 0.1, 0.2, 0.5])
def test_the_error_of_all_looks_is_that_of_trying_all_signs(error: float) -> None:
    sums = ending_sums(error, COUNTS, SHARES)
    assert all(sums)
    growing = np.arange(1.0, 12.0)
    assert error_of_all(COUNTS, sums) == pytest.approx(error_by_trying(growing, sums))


@pytest.mark.parametrize("error", [0.05, 0.2])
def test_no_order_of_sizes_that_was_tried_errs_more_than_growing_sizes(
    error: float,
) -> None:
    random = np.random.default_rng(1)
    sums = ending_sums(error, COUNTS, SHARES)
    counted = error_of_all(COUNTS, sums)
    orders = [random.permutation(11).astype(float) for _ in range(60)]
    # Growing sizes with one out of place.
    for _ in range(60):
        moved = list(range(11))
        moved.insert(random.integers(11), moved.pop(random.integers(11)))
        orders.append(np.array(moved, dtype=float))
    assert max(error_by_trying(order, sums) for order in orders) <= counted + 1e-12
    assert counted <= error


def test_all_looks_err_in_5_percent_at_most_whichever_blocks_lack_a_side() -> None:
    shares = tuple(look.share for look in RULE.plan)
    errors = [
        error_of_all(counts, ending_sums(0.05, counts, shares))
        for first in (0, 3, 6, 7, 8)
        for second in (8, 12, 14)
        for third in (14, 18, 20)
        if (counts := (first, max(first, second), third))
    ]
    assert max(errors) <= 0.05 + 1e-12
    # If no block lacks a side, most of the error is used.
    whole = (8, 14, 20)
    assert error_of_all(whole, ending_sums(0.05, whole, shares)) > 0.045


@pytest.mark.parametrize(
    ("least", "most", "looks"),
    [(8, 20, (8, 14, 20)), (8, 16, (8, 12, 16)), (8, 9, (8, 9)), (12, 12, (12,))],
)
def test_looks_are_spread_from_the_least_to_the_most(
    least: int, most: int, looks: tuple[int, ...]
) -> None:
    plan = planned(least, most).plan
    assert tuple(look.blocks for look in plan) == looks
    assert sum(look.share for look in plan) == pytest.approx(1)
    assert all(after.blocks - before.blocks <= 6 for before, after in pairwise(plan))


def test_a_first_look_of_6_blocks_gets_the_error_that_its_smallest_p_needs() -> None:
    rule = planned(6, 20)
    x = pd.Series(0.5 + np.arange(6) / 100)
    assert effect_of(x, rule=rule).p_value == pytest.approx(0.05)
    assert effect_of(x, rule=rule).low > 1
    assert planned(5, 20).plan[0].share == planned(8, 20).plan[0].share


@pytest.mark.promise
def test_interval_and_p_never_contradict_each_other() -> None:
    random = np.random.default_rng(3)
    excluded_runs = 0
    for _ in range(400):
        x = random.normal(random.choice([0, 0.1, 0.2]), 0.15, random.integers(8, 21))
        # Some blocks lack a side.
        x[random.random(len(x)) < 0.05] = np.nan
        effect = effect_of(pd.Series(x), rule=RULE)
        excludes = effect.low > 1 or effect.high < 1
        assert excludes == (effect.p_value <= 0.05)
        assert not effect.narrow_low < effect.low
        assert not effect.narrow_high > effect.high
        excluded_runs += excludes
    assert 80 < excluded_runs < 300


def test_before_the_least_number_of_blocks_there_is_no_interval_and_nothing_shows() -> None:
    effect = effect_of(pd.Series(np.full(7, 0.5) + np.arange(7) / 100), rule=RULE)
    assert np.isnan([effect.low, effect.high, effect.narrow_low]).all()
    assert effect.p_value == 1


@pytest.mark.parametrize("spoilt", [(), (3,)])
def test_the_first_look_can_show_something_also_where_one_block_is_spoilt(
    spoilt: tuple[int, ...],
) -> None:
    x = pd.Series(np.full(8, 0.5) + np.arange(8) / 100)
    x[list(spoilt)] = np.nan
    effect = effect_of(x, rule=RULE)
    assert effect.n == 8 - len(spoilt)
    assert effect.low > 1.6
    assert effect.confidence >= 0.95


def test_blocks_after_a_look_count_only_at_the_next_one() -> None:
    x = np.random.default_rng(4).normal(0.1, 0.1, 20)
    first = effect_of(pd.Series(x[:8]), rule=RULE)
    for n in (9, 13):
        assert effect_of(pd.Series(x[:n]), rule=RULE) == first
    second = effect_of(pd.Series(x[:14]), rule=RULE)
    assert (first.n, second.n) == (8, 14)
    assert second.low != first.low
    assert second.looks is not None
    assert second.looks.counts == (8, 14)
    assert second.looks.text(14) == "looks after 8, 14 and 20 blocks, 14 of at most 20 counted"


@pytest.mark.parametrize("kind", KINDS)
def test_equal_treatments_differ_in_one_of_twenty_runs_at_most_however_often_they_are_looked_at(
    kind: str,
) -> None:
    at_blocks, at_looks, of_rule = errors(np.random.default_rng(4), kind, 3000)
    # Three standard errors of so many runs.
    assert of_rule <= 0.05 + 3 * (0.05 * 0.95 / 3000) ** 0.5
    assert at_blocks > at_looks >= 0.07, "the usual test, looked at more often"
