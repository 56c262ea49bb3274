"""The scatter of single runs, against known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.statistics.two_samples import apart, scatter


def test_two_runs_differ_by_students_t() -> None:
    # t with 4 degrees of freedom is 2.776 at 0.975; s of 1 to 5 is 1.5811.
    result = scatter([3, 1, 5, 2, 4])
    assert (result.n, result.mean) == (5, 3)
    assert result.smallest_difference == pytest.approx(2.7764 * 1.5811 * math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("values", [[], [270.0], [270.0, 305.0], [250, math.nan, 260, 255, 240]])
def test_few_runs_and_runs_that_held_out_tell_no_difference(values: list[float]) -> None:
    result = scatter(values)
    assert result.n == np.isfinite(values).sum()
    assert math.isnan(result.smallest_difference)


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
