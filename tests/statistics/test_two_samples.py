"""Two samples without pairs, rates, and the scatter of single runs, against known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.statistics.two_samples import Rate, _rank_sum_counts, apart, shift, wider_t


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (5, 2), (6, 6), (9, 11)])
def test_the_rank_sum_distribution_is_that_of_scipy(n: int, m: int) -> None:
    counts = _rank_sum_counts(n, m)
    assert counts.sum() == math.comb(n + m, n)
    x = np.arange(n) - 0.5
    exact = stats.mannwhitneyu(x, np.arange(n, n + m), method="exact", alternative="less").pvalue
    assert counts[0] / counts.sum() == pytest.approx(exact)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (4, 4), (6, 8), (12, 12)])
def test_unpaired_intervals_hold_the_truth_as_often_as_they_say(n: int, m: int) -> None:
    random = np.random.default_rng(n * 100 + m)
    covered = 0
    for _ in range(300):
        _, low, high, _ = shift(random.normal(2, 1, n), random.normal(0, 1, m))
        covered += low <= 2 <= high
    assert covered / 300 >= 0.915


def test_a_single_trial_and_samples_without_spread_have_no_interval() -> None:
    for x, y in (([2.0], [1.0]), ([2.0] * 3, [1.0] * 3)):
        middle, low, _, p = shift(np.array(x), np.array(y))
        assert middle == 1.0
        assert math.isnan(low)
        assert math.isnan(p)


@pytest.mark.promise
def test_the_p_of_ties_is_no_smaller_than_that_of_their_orders() -> None:
    assert shift(np.full(4, 2.0), np.full(4, 1.0))[3] == pytest.approx(2 / math.comb(8, 4))


def test_a_sample_spreads_at_least_as_much_as_its_source_can_tell() -> None:
    x, y = np.full(3, 2.0), np.full(3, 1.0)
    expected = stats.ttest_ind_from_stats(2.0, 0.1, 3, 1.0, 0.1, 3).pvalue
    assert wider_t(x, y, 0.1)[3] == pytest.approx(expected)
    scattered = np.array([1.0, 2.0, 3.0])
    assert wider_t(scattered, y, 0.1)[1:] == pytest.approx(wider_t(scattered, y)[1:], rel=0.2)


def test_four_of_four_may_still_be_two_of_five() -> None:
    assert Rate(4, 4).text() == "4 of 4: 100% [40%, 100%]"
    assert Rate(0, 0).text() == "no case"


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (3, 8), (19, 20), (100, 100)])
def test_the_ends_are_those_of_clopper_and_pearson(hits: int, n: int) -> None:
    low, high = Rate(hits, n).ends()
    assert (low == 0, high == 1) == (hits == 0, hits == n)
    assert hits == 0 or stats.binom.sf(hits - 1, n, low) == pytest.approx(0.025)
    assert hits == n or stats.binom.cdf(hits, n, high) == pytest.approx(0.025)


def test_the_share_of_pairs_beyond_a_ratio_is_that_of_the_truth_in_95_of_100_cases() -> None:
    random = np.random.default_rng(11)
    spread, ratio, cases = 0.08, 305 / 270, 2000
    true = 2 * stats.norm.sf(math.log(ratio) / (spread * math.sqrt(2)))
    covered = 0
    for _ in range(cases):
        groups = np.exp(random.normal([[5.0], [5.6]], spread, (2, 6)))
        result = apart(groups.tolist(), ratio)
        covered += result.low <= true <= result.high
    assert covered / cases == pytest.approx(0.95, abs=0.02)


def test_pairs_are_counted_within_a_kind_and_not_between_kinds() -> None:
    result = apart([[100, 100, 200], [1000, 1010]], 1.13)
    assert (result.n, result.kinds, result.pairs, result.beyond) == (5, 2, 4, 2)
    assert result.low < result.share < result.high


def test_runs_that_held_out_leave_no_share_behind() -> None:
    result = apart([[100, math.nan, 120, 90]], 1.13)
    assert result.unreached == 1
    assert math.isnan(result.share)
    assert math.isnan(apart([[100, 120]], 1.13).share)
