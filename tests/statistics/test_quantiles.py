"""A quantile has an interval that covers it, or is not supported."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perflab.statistics.quantiles import across_trials, quantile, smallest_n


@pytest.mark.parametrize(
    ("p", "n"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688), (0.01, 368)]
)
def test_the_smallest_sample_of_each_percentile(p: float, n: int) -> None:
    assert smallest_n(p) == n
    assert quantile(np.arange(n), p).supported
    assert not quantile(np.arange(n - 1), p).supported


@pytest.mark.parametrize(("p", "n"), [(0.5, 25), (0.95, 200), (0.99, 500)])
def test_intervals_of_independent_values_cover_the_truth(p: float, n: int) -> None:
    random = np.random.default_rng(7)
    truth = -math.log(1 - p)
    estimates = [quantile(random.exponential(size=n), p) for _ in range(1000)]
    covered = sum(estimate.low <= truth <= estimate.high for estimate in estimates)
    assert 935 <= covered <= 1000


@pytest.mark.parametrize("values", [[], [math.nan]])
def test_a_sample_without_values_has_no_estimate(values: list[float]) -> None:
    for estimate in (quantile(values, 0.5), across_trials(values)):
        assert estimate.n == 0
        assert not estimate.supported
        assert math.isnan(estimate.value)


def test_six_trials_have_their_extremes_as_the_medians_interval() -> None:
    estimate = across_trials([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    assert (estimate.value, estimate.low, estimate.high) == (3.5, 1.0, 6.0)


def test_three_trials_have_a_t_interval_on_logs() -> None:
    assert math.isnan(across_trials([4.0, 90.0]).low), "an interval of two would span decades"
    estimate = across_trials([math.e, math.e**2, math.e**3])
    margin = 4.302653 / math.sqrt(3)
    assert estimate.value == pytest.approx(math.e**2)
    assert estimate.low == pytest.approx(math.exp(2 - margin), rel=1e-5)
    assert estimate.method == "t on logs"
