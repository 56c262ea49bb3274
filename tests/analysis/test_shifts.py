"""Shifts of a level: how often one is found where there is none, and where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from perflab.analysis.curves.shifts import ENOUGH, LEVEL, level_shifts, shift_p

SETS = 400
# More false alarms than this out of SETS come once in 1,000 times from a test that keeps 5%.
MOST = int(stats.binom.ppf(0.999, SETS, LEVEL))


def spreads(n: int, kind: str) -> np.ndarray:
    """Return the deviation of each value: equal, or larger in some part."""
    found = np.ones(n)
    begin, end = {"first half": (0, n // 2), "few first": (0, max(3, n // 5)),
                  "many last": (max(3, n // 5), n), "equal": (0, 0)}[kind]  # fmt: skip
    found[begin:end] = 5
    return found


@pytest.mark.parametrize("kind", ["equal", "first half", "few first", "many last"])
@pytest.mark.parametrize("n", [5, 8, 12, 13, 20, 30])
def test_a_series_without_a_shift_is_called_shifted_in_at_most_5_percent(n: int, kind: str) -> None:
    random, deviations = np.random.default_rng(n), spreads(n, kind)
    alarms = sum(bool(level_shifts(deviations * random.normal(size=n))) for _ in range(SETS))
    assert alarms <= MOST


@pytest.mark.parametrize("n", [12, 20])
def test_outlying_runs_are_no_shift(n: int) -> None:
    random = np.random.default_rng(n)
    alarms = sum(bool(level_shifts(random.standard_t(2, size=n))) for _ in range(SETS))
    assert alarms <= MOST


def test_the_p_value_of_the_clearest_shift_of_twelve_is_that_of_six_signs_that_agree() -> None:
    x = np.array([0.0, 0.1, -0.1, 0.05, -0.05, 0.02, 5.0, 5.2, 4.9, 5.1, 5.3, 4.8])
    assert shift_p(x) == 2 / 2**6
    assert [shift.place for shift in level_shifts(x)] == [6]
    assert shift_p(-x) == shift_p(x) == shift_p(3 * x + 7)


def test_fewer_than_twelve_values_show_nothing_however_far_apart_they_are() -> None:
    x = np.repeat([0.0, 100.0], (5, 6))
    assert len(x) == ENOUGH - 1
    assert shift_p(x) == 1
    assert level_shifts(x) == []


def test_a_series_that_never_moves_has_no_shift() -> None:
    assert shift_p(np.full(20, 1.3)) == 1
    assert level_shifts(np.full(40, 1.3)) == []


def test_a_planted_shift_is_found_where_it_is() -> None:
    random = np.random.default_rng(3)
    found = []
    for _ in range(100):
        x = random.normal(size=30) + 3.0 * (np.arange(30) >= 18)
        found.append([shift.place for shift in level_shifts(x)])
    assert sum(places == [18] for places in found) >= 80
    assert sum(bool(places) for places in found) >= 98


def test_two_shifts_are_both_found_and_the_parts_between_them_have_none() -> None:
    random = np.random.default_rng(4)
    level = np.repeat([0.0, 4.0, 0.0], 20)
    found = [
        [each.place for each in level_shifts(level + random.normal(size=60))] for _ in range(60)
    ]
    near = [len(each) == 2 and abs(each[0] - 20) <= 1 and abs(each[1] - 40) <= 1 for each in found]
    assert sum(near) >= 50


def test_the_same_series_has_the_same_p_value_however_often_it_is_asked() -> None:
    x = np.random.default_rng(5).normal(size=80)
    assert shift_p(x) == shift_p(x.copy()) > 0
