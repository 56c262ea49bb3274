"""Recordings of runs that were looked at after every block are judged by that rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.methods import signed_rank
from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.every_block import error_of_all, interval, level_of_one, p_value
from perflab.recordings import UntilDecided

FIRST, MOST = 6, 11
OLD = UntilDecided(least_blocks=8, most_blocks=20)
SIGNS = 1 - 2 * ((np.arange(2**MOST)[:, None] >> np.arange(MOST)) & 1)


def error_by_trying(sizes: np.ndarray, level: float) -> float:
    """Return the error of all looks at blocks of these sizes, by trying every choice of signs."""
    ever = np.zeros(len(SIGNS), dtype=bool)
    for n in range(FIRST, MOST + 1):
        ranks = np.argsort(np.argsort(sizes[:n])) + 1
        above = (SIGNS[:, :n] > 0) @ ranks
        smaller = np.minimum(above, n * (n + 1) // 2 - above)
        ever |= 2 * signed_rank.null_cdf(n)[smaller] <= level * (1 + 1e-12)
    return float(ever.mean())


@pytest.mark.parametrize("level", [0.005, 0.01, 0.02, 0.05, 0.2])
def test_the_error_of_all_looks_is_that_of_trying_all_signs(level: float) -> None:
    growing = np.arange(1.0, MOST + 1)
    assert error_of_all(level, FIRST, MOST) == pytest.approx(error_by_trying(growing, level))


@pytest.mark.parametrize(("first", "most"), [(8, 12), (8, 20), (6, 24), (12, 40)])
def test_the_level_of_a_look_is_the_largest_that_all_together_allow(first: int, most: int) -> None:
    level = level_of_one(0.05, first, most)
    assert error_of_all(level, first, most) <= 0.05 < error_of_all(level * 1.001, first, most)


def test_a_rule_without_a_plan_looks_after_every_block() -> None:
    x = np.random.default_rng(2).normal(0.1, 0.1, 11)
    found = effect_of(pd.Series(x), rule=OLD)
    assert found.n == 11
    assert (np.log(found.low), np.log(found.high)) == pytest.approx(interval(x, 0.95, 8, 20)[:2])
    assert found.p_value == p_value(x, 8, 20)
    assert found.looked is not None
    wanted = "looked at after every block from 8 on, 11 of at most 20 counted"
    assert found.looked.text(found.n) == wanted


def test_before_its_least_number_of_blocks_there_is_no_interval() -> None:
    found = effect_of(pd.Series(np.full(7, 0.5) + np.arange(7) / 100), rule=OLD)
    assert np.isnan([found.low, found.high, found.narrow_low]).all()
    assert found.p_value == 1
