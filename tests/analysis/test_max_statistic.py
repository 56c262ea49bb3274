"""Correction over many columns: exact by hand, level kept over all, and power left at 6 blocks."""

from __future__ import annotations

import numpy as np
import pytest

from perflab.analysis.methods.comparison import benjamini_hochberg, permutation_p
from perflab.analysis.methods.max_statistic import max_t_p


def test_one_column_has_the_p_value_of_the_sign_flip_test() -> None:
    one = np.array([0.4, 1.1, -0.2, 0.9, 0.3, 0.8])
    assert max_t_p(one[:, None])[0] == pytest.approx(permutation_p(one))


def test_two_columns_by_hand() -> None:
    # The first one's, 3 / sqrt(3), is reached by 1 of 4 flips; 1 / sqrt(5) by all of them.
    differences = np.array([[1.0, 2.0], [1.0, -1.0], [1.0, 0.0]])
    assert max_t_p(differences) == pytest.approx([1 / 4, 1.0])


@pytest.mark.parametrize("blocks", [6, 13])
def test_chance_makes_any_column_stand_out_as_rarely_as_is_said(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    shared = random.normal(size=(400, blocks, 1))
    runs = random.standard_t(3, size=(400, blocks, 40)) + shared
    false = sum(max_t_p(run).min() <= 0.05 for run in runs)
    # At 5% more than 33 of 400 has a probability below 0.5%.
    assert false <= 33


def test_a_large_change_among_hundreds_is_found_at_6_blocks() -> None:
    random = np.random.default_rng(3)
    found = 0
    for _ in range(50):
        differences = random.normal(size=(6, 300))
        differences[:, 7] += 20
        found += max_t_p(differences)[7] < 0.05
    assert found >= 48
    alone = [permutation_p(column) for column in differences.T]
    assert benjamini_hochberg(alone)[7] > 0.05


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (6, 0)])
def test_too_few_blocks_or_columns_give_no_p_value(shape: tuple[int, int]) -> None:
    assert np.isnan(max_t_p(np.ones(shape))).all()


def test_columns_that_stay_exactly_as_they_are_do_not_stand_out() -> None:
    assert max_t_p(np.zeros((6, 2))).tolist() == [1.0, 1.0]
