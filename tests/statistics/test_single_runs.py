"""How far single runs lie apart, against known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.statistics.two_samples import apart


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
