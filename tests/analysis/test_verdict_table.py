"""What the table of verdicts says, in a small version, and that the page is the one it writes."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from perflab.analysis.treatments.decision import PEEKING
from perflab.analysis.treatments.verdict import Outcome
from perflab.paths import project_root


@pytest.fixture(scope="module")
def table() -> ModuleType:
    place = project_root() / "benchmarks" / "verdict_table.py"
    spec = importlib.util.spec_from_file_location("verdict_table", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks for its module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def counts(table: ModuleType, truth: float, noise: float, blocks: int, sets: int = 150):
    return table.verdicts(np.random.default_rng(1), sets, blocks, truth, noise)


def test_another_size_is_seldom_called_reproduced(table: ModuleType) -> None:
    found = counts(table, 1.3, 0.08, 6)["1.6"]
    # Under the rule before it was 53%.
    assert found[Outcome.REPRODUCED] / 150 <= 0.15
    assert found[Outcome.SIZE_UNDECIDED] / 150 >= 0.75


def test_the_published_size_is_mostly_called_reproduced(table: ModuleType) -> None:
    assert counts(table, 1.6, 0.05, 8)["1.6"][Outcome.REPRODUCED] / 150 >= 0.95
    assert counts(table, 1.0, 0.05, 12)["no effect"][Outcome.REPRODUCED] / 150 >= 0.95


def test_no_effect_reproduces_no_published_one(table: ModuleType) -> None:
    found = counts(table, 1.0, 0.05, 8)
    assert found["1.6"][Outcome.NOT_REPRODUCED] / 150 >= 0.9
    # Only a false alarm of the direction, one in forty, can look like 1.1.
    assert found["1.1"][Outcome.REPRODUCED] / 150 <= 0.06


@pytest.mark.parametrize(("claims", "true"), [(1, 0), (5, 1), (15, 0)])
def test_of_the_directions_told_at_most_one_in_twenty_is_none(
    table: ModuleType, claims: int, true: int
) -> None:
    level = table.family_level(np.random.default_rng(2), 1200 // (claims + 5), 8, claims, true)
    # Three standard errors of so few runs above it.
    assert level.false_share <= 0.05 + 3 * (0.05 / (1200 // (claims + 5))) ** 0.5


def test_looking_after_every_block_raises_false_alarms_as_is_said(table: ModuleType) -> None:
    once, ever = table.false_alarms_of_peeking(np.random.default_rng(3), 4000)
    assert once == pytest.approx(0.05, abs=0.012)
    assert ever == pytest.approx(PEEKING, abs=0.025)


def test_the_page_is_the_one_that_the_script_writes(table: ModuleType) -> None:
    """All but the simulated numbers: the words, the kinds of rows, and the table of powers."""
    page, frame = table.PAGE.read_text(), table.FRAME.read_text()
    for words in frame.split("\n\n"):
        if "{" not in words:
            assert words.strip() in page
    assert table.power_table() in page
    rows = len(table.TRUTHS) * len(table.NOISES) * len(table.BLOCKS)
    told = [line for line in page.splitlines() if line.endswith("% |") and "| 20% |" in line]
    assert len(told) >= 3 * rows / len(table.NOISES)
