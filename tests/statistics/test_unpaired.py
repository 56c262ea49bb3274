"""Two samples without pairs: exact ranks, and intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.statistics.two_samples import _rank_sum_counts, shift, wider_t


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


def test_a_sample_spreads_at_least_as_much_as_its_source_can_tell() -> None:
    x, y = np.full(3, 2.0), np.full(3, 1.0)
    expected = stats.ttest_ind_from_stats(2.0, 0.1, 3, 1.0, 0.1, 3).pvalue
    assert wider_t(x, y, 0.1)[3] == pytest.approx(expected)
    scattered = np.array([1.0, 2.0, 3.0])
    assert wider_t(scattered, y, 0.1)[1:] == pytest.approx(wider_t(scattered, y)[1:], rel=0.2)
