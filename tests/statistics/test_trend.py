"""A trend is told by the order of values alone, and its size by the median of slopes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from perflab.statistics.trend import change_over, trend_p


def inversions(values: tuple[int, ...]) -> int:
    return sum(b < a for n, a in enumerate(values) for b in values[n + 1 :])


def test_the_p_value_is_the_share_of_orders_that_are_as_extreme() -> None:
    orders = list(permutations(range(5)))
    counts = np.array([min(inversions(order), 10 - inversions(order)) for order in orders])
    for order in orders[::7]:
        as_extreme = np.mean(counts <= min(inversions(order), 10 - inversions(order)))
        assert trend_p(np.array(order, float)) == pytest.approx(min(1.0, as_extreme))


def test_values_that_are_all_alike_have_no_trend() -> None:
    assert trend_p(np.ones(8)) == 1.0


def test_one_value_that_lies_apart_does_not_move_the_change() -> None:
    rising = np.arange(8.0)
    assert change_over(rising) == 7.0
    rising[0] = -100.0
    assert change_over(rising) == pytest.approx(7.0, abs=1.5)
