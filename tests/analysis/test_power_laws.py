"""Exponents of known power laws are covered, and what bends is said to be none."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perflab.analysis.curves.power_laws import power_law

RUNS = 100
# At 95% coverage, fewer than 89 of 100 has a probability below 1%.
LEAST_COVERED = 89


RATES = st.one_of(st.floats(0, 1e9), st.just(math.nan), st.just(7.0))


@example([(1, 59, 0), (2, 13, 0), (3, 7, 0), (4, 7, 0)])
@given(st.lists(st.tuples(st.integers(1, 200), RATES, st.integers(0, 6)), max_size=30))
@settings(deadline=None, max_examples=80)
def test_any_trials_get_an_answer_without_complaint(rows) -> None:
    table = pd.DataFrame(rows, columns=["load", "throughput_rps", "block"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        power = power_law(table, "load", "throughput_rps")
    assert power.supported == math.isfinite(power.high)
    assert power.text()


def volumes(random, blocks: int, exponent=2.0, noise=0.1, bend=0.0) -> pd.DataFrame:
    users = np.array([2, 4, 8, 16, 32])
    logs = exponent * np.log(users) + bend * np.log(users) ** 2
    logs = 1 + logs + noise * random.normal(size=(blocks, 5)) + random.normal(size=(blocks, 1))
    return pd.DataFrame(
        {
            "block": np.repeat(np.arange(blocks), 5),
            "users": np.tile(users, blocks),
            "messages": np.exp(logs).ravel(),
        }
    )


@pytest.mark.parametrize("blocks", [4, 6])
def test_the_interval_of_an_exponent_covers_it(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    found = [power_law(volumes(random, blocks), "users", "messages") for _ in range(RUNS)]
    assert sum(each.low <= 2.0 <= each.high for each in found) >= LEAST_COVERED
    assert sum(bool(each.warnings) for each in found) <= 0.09 * RUNS
    assert {each.n for each in found} == {blocks}


def test_an_exact_power_law_is_found_and_said() -> None:
    users = np.tile([1, 10, 100, 1000], 4)
    table = pd.DataFrame({"u": users, "m": 3.0 * users**2, "block": np.repeat(range(4), 4)})
    found = power_law(table, "u", "m", unit="trial")
    assert found.factor == pytest.approx(3)
    assert found.text() == "grows with the power 2.00 [2.00, 2.00] (n = 4 trials)"
    few = power_law(table[table["block"] > 0], "u", "m")
    assert few.text() == "no exponent from 3 blocks: 4 are needed"


def test_a_bent_law_is_said_to_be_none() -> None:
    found = power_law(volumes(np.random.default_rng(1), 6, bend=0.3), "users", "messages")
    assert "no power law" in found.text()
    assert "grows with x" in found.warnings[0]
