"""Power of the exact test: known answers, simulation, and ranges."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from perflab.statistics.sample_sizes import (
    blocks_for_equivalence,
    blocks_needed,
    equivalence_power,
    noise_range,
    power,
)
from tests.statistics.paired import compare


@pytest.mark.parametrize("shift", [0.5, 1.2, 2.0])
def test_six_blocks_find_a_shift_where_all_six_agree(shift: float) -> None:
    exact = stats.norm.cdf(shift) ** 6 + stats.norm.cdf(-shift) ** 6
    assert power(shift, 1.0, 6) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("blocks", [8, 12])
def test_power_is_the_share_of_comparisons_that_find_the_effect(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    hits = sum(
        compare(pd.Series(np.exp(logs)), pd.Series(np.ones(blocks))).low > 1
        for logs in random.normal(0.09, 0.1, (300, blocks))
    )
    assert hits / 300 == pytest.approx(power(0.09, 0.1, blocks), abs=0.09)


def test_no_shift_is_found_by_too_few_blocks_for_the_level() -> None:
    assert power(50.0, 1.0, 8, 0.05 / 15) == 0
    assert power(50.0, 1.0, 10, 0.05 / 15) == 1
    assert blocks_needed(5.0, 1.0, 0.05 / 15) == 10


@pytest.mark.parametrize("blocks", [3, 8, 24, 60])
def test_without_an_effect_power_is_the_level_that_is_achieved(blocks: int) -> None:
    assert 0.03 <= power(0.0, 1.0, blocks) <= 0.056


def test_the_blocks_needed_are_the_fewest() -> None:
    needed = blocks_needed(math.log(1.08), 0.07)
    assert power(math.log(1.08), 0.07, needed) >= 0.8 > power(math.log(1.08), 0.07, needed - 1)
    assert blocks_needed(1e-6, 1.0) == -1


def test_equivalence_needs_both_sides() -> None:
    one_side = equivalence_power(0.04, 0.05, 12, bound=0.05)
    centred = equivalence_power(0.0, 0.05, 12, bound=0.05)
    assert one_side < 0.2 < 0.8 < centred
    assert equivalence_power(0.06, 0.05, 12, bound=0.05) < 0.05
    assert equivalence_power(0.05, 0.02, 12, bound=0.05) == pytest.approx(0.05, abs=0.01)
    needed = blocks_for_equivalence(0.0, 0.05, 0.03)
    assert equivalence_power(0.0, 0.05, needed, bound=0.03) >= 0.8


def test_the_range_of_the_noise_holds_it_in_four_of_five_cases() -> None:
    sample = np.random.default_rng(1).normal(0, 0.1, (4000, 8)).std(axis=1, ddof=1)
    ends = np.array([noise_range(deviation, 8) for deviation in sample[:1000]])
    assert np.mean((ends[:, 0] <= 0.1) & (ends[:, 1] >= 0.1)) == pytest.approx(0.8, abs=0.04)
