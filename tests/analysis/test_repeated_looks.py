"""Looking after every block: the chances of all looks are counted, whatever noise and order."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.methods import signed_rank
from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.repeated_looks import (
    error_of_all,
    interval,
    level_of_one,
    p_value,
)
from perflab.paths import project_root
from perflab.recordings import UntilDecided

FIRST, MOST = 6, 11
RULE = UntilDecided(least_blocks=8, most_blocks=20)
SIGNS = 1 - 2 * ((np.arange(2**MOST)[:, None] >> np.arange(MOST)) & 1)


@pytest.fixture(scope="module")
def table() -> ModuleType:
    place = project_root() / "benchmarks" / "stopping_table.py"
    spec = importlib.util.spec_from_file_location("stopping_table", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks for its module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


def test_no_order_of_sizes_that_was_tried_errs_more_than_the_one_that_is_counted_with() -> None:
    random = np.random.default_rng(1)
    level = level_of_one(0.05, FIRST, MOST)
    counted = error_of_all(level, FIRST, MOST)
    orders = [random.permutation(MOST).astype(float) for _ in range(60)]
    # Growing, but for one that is out of its place.
    for _ in range(60):
        moved = list(range(MOST))
        moved.insert(random.integers(MOST), moved.pop(random.integers(MOST)))
        orders.append(np.array(moved, dtype=float))
    assert max(error_by_trying(order, level) for order in orders) <= counted + 1e-12
    assert counted <= 0.05


@pytest.mark.parametrize(("first", "most"), [(8, 12), (8, 20), (6, 24), (12, 40)])
def test_the_level_of_a_look_is_the_largest_that_all_together_allow(first: int, most: int) -> None:
    level = level_of_one(0.05, first, most)
    assert error_of_all(level, first, most) <= 0.05 < error_of_all(level * 1.001, first, most)


def test_a_single_look_is_the_usual_test() -> None:
    x = np.random.default_rng(2).normal(0.1, 0.2, 9)
    assert p_value(x, 9, 9) == pytest.approx(signed_rank.p_value(x))
    assert interval(x, 0.95, 9, 9) == pytest.approx(signed_rank.interval(x, 0.95))


def test_interval_and_p_never_contradict_each_other() -> None:
    random = np.random.default_rng(3)
    told = 0
    for _ in range(400):
        x = random.normal(random.choice([0, 0.1, 0.2]), 0.15, random.integers(8, 21))
        found = effect_of(pd.Series(x), rule=RULE)
        excludes = found.low > 1 or found.high < 1
        assert excludes == (found.p_value <= 0.05)
        assert found.narrow_low >= found.low
        assert found.narrow_high <= found.high
        told += excludes
    assert 100 < told < 300


def test_before_the_least_number_of_blocks_there_is_no_interval_and_nothing_shows() -> None:
    found = effect_of(pd.Series(np.full(7, 0.5) + np.arange(7) / 100), rule=RULE)
    assert np.isnan([found.low, found.high, found.narrow_low]).all()
    assert found.p_value == 1


def test_the_usual_least_number_of_blocks_can_show_something() -> None:
    found = effect_of(pd.Series(np.full(8, 0.5) + np.arange(8) / 100), rule=RULE)
    assert found.low > 1.6
    assert found.method == "Hodges-Lehmann, repeated signed-rank interval"
    assert found.confidence >= 0.95


@pytest.mark.parametrize(
    "kind",
    ["calm", "drift", "outliers", "heavy tails", "noise that grows tenfold",
     "steps far above the noise"],
)  # fmt: skip
def test_equal_treatments_differ_in_one_of_twenty_runs_at_most_however_often_they_are_looked_at(
    table: ModuleType, kind: str
) -> None:
    usual, found = table.errors(np.random.default_rng(4), kind, 3000)
    # Three standard errors of so many runs.
    assert found <= 0.05 + 3 * (0.05 * 0.95 / 3000) ** 0.5
    assert usual >= 0.11, "the usual test, looked at as often"


def test_the_interval_at_the_end_holds_the_truth_whatever_the_run_ended_for() -> None:
    """Ended on purpose where it is worst: at the first look whose interval misses the truth."""
    random = np.random.default_rng(5)
    level = level_of_one(0.05, RULE.least_blocks, RULE.most_blocks)
    missed = 0
    for _ in range(1500):
        x = 0.3 + 0.2 * random.standard_t(3, RULE.most_blocks)
        looks = range(RULE.least_blocks, RULE.most_blocks + 1)
        missed += any(signed_rank.p_value(x[:n] - 0.3) <= level for n in looks)
    assert missed / 1500 <= 0.05 + 3 * (0.05 * 0.95 / 1500) ** 0.5


def test_a_clear_effect_ends_a_run_early_and_a_doubtful_one_later(table: ModuleType) -> None:
    random = np.random.default_rng(6)
    clear = table.by_rule(table.simulated(random, 1.6, 0.05, 40), table.MOST)
    doubtful = table.by_rule(table.simulated(random, 1.4, 0.08, 40), table.MOST)
    assert clear.decided == 1
    assert clear.blocks < 9
    assert doubtful.blocks > clear.blocks + 2


def test_the_page_is_the_one_that_the_script_writes(table: ModuleType) -> None:
    """All but the simulated numbers: the words, the exact levels, and the kinds of rows."""
    page, frame = table.PAGE.read_text(), table.FRAME.read_text()
    for words in frame.split("\n\n"):
        if "{" not in words:
            assert words.strip() in page
    assert table.level_table() in page
    for kind in table.KINDS:
        assert f"| {kind} |" in page
