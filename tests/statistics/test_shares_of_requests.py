"""The difference of two shares allows for failures that nobody has seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.statistics.shares import (
    BlocksOfShares,
    difference_ends,
    difference_of_shares,
    difference_p,
)
from perflab.statistics.two_samples import Rate

BLOCKS = 8


def side(*failed: int, requests: int = 1000) -> pd.DataFrame:
    return pd.DataFrame({"failed": failed, "requests": requests})


def test_no_failures_on_both_sides_leave_what_may_have_been_missed() -> None:
    effect = difference_of_shares(side(*[0] * BLOCKS), side(*[0] * BLOCKS))
    assert effect.estimate == 0
    assert (effect.low, effect.high) == pytest.approx((-4.61e-4, 4.61e-4), rel=0.01)
    assert effect.p_value == 1
    assert isinstance(effect.blocks, BlocksOfShares)
    assert effect.blocks.none_failed


@pytest.mark.parametrize("new", [[0, 0, 1, 0, 0, 2, 0, 0], [9, 8, 11, 10, 12, 9, 8, 13]])
def test_the_interval_is_never_narrower_than_that_of_the_requests_or_of_the_blocks(
    new: list[int],
) -> None:
    effect = difference_of_shares(side(*new), side(*[0] * BLOCKS))
    low, high = difference_ends(Rate(sum(new), 8000), Rate(0, 8000), 0.05)
    assert effect.low <= low < high <= effect.high
    assert effect.low <= np.percentile(new, 25) / 1000
    assert effect.estimate == pytest.approx(sum(new) / 8000)


def test_failures_that_come_together_in_one_block_are_no_difference_by_their_number_alone() -> None:
    burst = difference_of_shares(side(80, *[0] * 7), side(*[0] * BLOCKS))
    spread = difference_of_shares(side(*[10] * 4, *[9] * 4), side(*[0] * BLOCKS))
    assert burst.p_value > 0.05
    assert burst.low <= 0
    assert spread.p_value < 0.05
    assert spread.low > 0


@pytest.mark.parametrize("centre", [-0.002, 0.0, 0.001, 0.004])
def test_the_p_value_of_a_difference_is_the_error_whose_interval_ends_there(centre: float) -> None:
    new, old = Rate(12, 8000), Rate(4, 8000)
    p = difference_p(new, old, centre)
    for error, holds in ((0.9 * p, True), (min(1.0, 1.1 * p), p > 0.99)):
        low, high = difference_ends(new, old, error)
        assert (low <= centre <= high) == holds


@pytest.mark.parametrize(
    ("old", "new"), [(5e-5, 5e-5), (0.0, 5e-5), (5e-4, 5e-4), (0.0, 5e-4), (0.01, 0.015)]
)
def test_the_interval_holds_the_true_difference_of_rare_failures(old: float, new: float) -> None:
    random, sets, requests = np.random.default_rng(3), 150, 1_400
    held = 0
    for failed_new, failed_old in zip(
        *(random.binomial(requests, share, (sets, BLOCKS)) for share in (new, old)), strict=True
    ):
        x, counts = (failed_new - failed_old) / requests, (failed_new.sum(), failed_old.sum())
        sides = [Rate(int(failed), BLOCKS * requests) for failed in counts]
        interval = BlocksOfShares(x, x, x, 1 / requests, None, *sides).interval(0.95)
        held += interval.low <= new - old <= interval.high
    assert held / sets >= 0.94
