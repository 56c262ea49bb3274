"""Two samples without pairs: exact ranks, and intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.errors import AnalysisError
from perflab.statistics.two_samples import _rank_sum_counts, unpaired


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
    for _ in range(1000):
        x, y = (
            np.exp(0.1 * random.standard_normal(n) + 0.2),
            np.exp(0.1 * random.standard_normal(m)),
        )
        _, low, high, _ = unpaired(x, y)
        covered += low <= math.exp(0.2) <= high
    assert covered / 1000 >= 0.935


def test_a_single_trial_has_no_interval_and_bad_values_are_refused() -> None:
    ratio, low, _, p = unpaired([2.0], [1.0])
    assert ratio == pytest.approx(2.0)
    assert math.isnan(low)
    assert math.isnan(p)
    assert unpaired([2.0, 2.0], [2.0, 2.0])[:3] == (1.0, 1.0, 1.0)
    for bad in ([], [math.nan], [0.0, 1.0], [math.inf]):
        with pytest.raises(AnalysisError):
            unpaired(bad, [1.0, 2.0])
