"""What repeated runs say of a single one, against known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.analysis.methods.single_runs import apart, scatter


def test_intervals_are_those_of_students_t() -> None:
    # t with 4 degrees of freedom is 2.776 at 0.975; s of 1 to 5 is 1.5811.
    found = scatter([3, 1, 5, 2, 4])
    assert (found.n, found.mean, found.sd) == (5, 3, pytest.approx(1.5811, abs=1e-4))
    half = 2.7764 * 1.5811
    assert found.mean_high - 3 == pytest.approx(half / math.sqrt(5), rel=1e-3)
    assert 3 - found.mean_low == pytest.approx(half / math.sqrt(5), rel=1e-3)
    assert found.next_high - 3 == pytest.approx(half * math.sqrt(1.2), rel=1e-3)
    assert 3 - found.next_low == pytest.approx(half * math.sqrt(1.2), rel=1e-3)
    assert found.smallest_difference == pytest.approx(half * math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("runs", [3, 8])
def test_each_interval_holds_what_it_is_for_in_95_of_100_cases(runs: int) -> None:
    random = np.random.default_rng(7)
    cases = 4000
    every = random.normal(287, 20, (cases, runs + 2))
    held = np.zeros(3)
    for row in every:
        found = scatter(row[:runs].tolist())
        held += (
            found.mean_low <= 287 <= found.mean_high,
            found.next_low <= row[runs] <= found.next_high,
            abs(row[runs] - row[runs + 1]) <= found.smallest_difference,
        )
    # 4,000 cases at 0.95 scatter by 0.0034.
    assert held / cases == pytest.approx([0.95] * 3, abs=0.015)


def test_a_single_run_is_less_sure_than_the_mean_however_many_there_were() -> None:
    random = np.random.default_rng(3)
    few, many = (scatter(random.normal(300, 30, n).tolist()) for n in (10, 10_000))
    assert many.mean_high - many.mean_low < (few.mean_high - few.mean_low) / 10
    assert many.next_high - many.next_low == pytest.approx(4 * 30, rel=0.05)


@pytest.mark.parametrize("values", [[], [270.0], [270.0, 305.0]])
def test_one_or_two_runs_have_no_interval(values: list[float]) -> None:
    found = scatter(values)
    assert found.n == len(values)
    assert all(map(math.isnan, (found.mean_low, found.next_high, found.smallest_difference)))


def test_runs_that_held_out_are_counted_and_leave_no_mean_behind() -> None:
    found = scatter([250, math.nan, 260, 255, 240])
    assert (found.n, found.unreached) == (4, 1)
    assert math.isnan(found.mean)
    assert math.isnan(found.next_low)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        scatter([1, 2, 3], confidence)


def test_the_share_of_pairs_beyond_a_ratio_is_that_of_the_truth_in_95_of_100_cases() -> None:
    random = np.random.default_rng(11)
    spread, ratio, cases = 0.08, 305 / 270, 2000
    true = 2 * stats.norm.sf(math.log(ratio) / (spread * math.sqrt(2)))
    held = 0
    for _ in range(cases):
        groups = np.exp(random.normal([[5.0], [5.6]], spread, (2, 6)))
        found = apart(groups.tolist(), ratio)
        held += found.low <= true <= found.high
    assert held / cases == pytest.approx(0.95, abs=0.02)


def test_pairs_are_counted_within_a_kind_and_not_between_kinds() -> None:
    found = apart([[100, 100, 200], [1000, 1010]], 1.13)
    assert (found.n, found.kinds, found.pairs, found.beyond) == (5, 2, 4, 2)
    assert found.low < found.share < found.high


def test_runs_that_held_out_leave_no_share_behind() -> None:
    found = apart([[100, math.nan, 120, 90]], 1.13)
    assert found.unreached == 1
    assert math.isnan(found.share)
    assert math.isnan(apart([[100, 120]], 1.13).share)


@pytest.mark.parametrize(("groups", "ratio"), [([[1.0, 0.0]], 1.13), ([[1.0, 2.0]], 1.0)])
def test_what_has_no_ratio_is_refused(groups: list[list[float]], ratio: float) -> None:
    with pytest.raises(ValueError, match="not"):
        apart(groups, ratio)
