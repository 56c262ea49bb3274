"""The order of trials is random, balanced and of the seed alone; plans warn of what they cannot."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perflab.recordings import Contrast
from perflab.trials.plan import RunPlan, too_few_blocks
from tests.trials.fakes import plan, treatment

NAMES = ("a", "b", "c", "d")


def of_four(seed: int, blocks: int = 6) -> RunPlan:
    return plan(blocks, seed=seed).model_copy(
        update={"treatments": tuple(treatment(name) for name in NAMES)}
    )


@given(seed=st.integers(0, 2**63), blocks=st.integers(1, 20))
def test_every_block_holds_every_treatment_once_and_the_seed_decides_how(
    seed: int, blocks: int
) -> None:
    order = of_four(seed, blocks).order()
    assert len(order) == blocks
    assert all(sorted(block) == list(NAMES) for block in order)
    assert order == of_four(seed, blocks).order()
    assert order == of_four(seed, blocks + 3).order()[:blocks]


def test_every_order_of_a_block_is_as_likely_as_any_other() -> None:
    blocks = [tuple(block) for seed in range(60) for block in of_four(seed, 40).order()]
    counts = Counter(blocks)
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(
    ("blocks", "claims", "words"),
    [
        (2, 1, "2 blocks can decide nothing: give 3 or more"),
        (3, 4, ""),
        (6, 1, ""),
        (6, 3, "6 blocks can show no single effect, however large it is; 7 blocks can"),
        (7, 3, ""),
    ],
)
def test_a_plan_that_can_decide_nothing_has_a_warning(blocks: int, claims: int, words: str) -> None:
    sides: dict[str, Any] = {"numerator": {"service": "a"}, "denominator": {"service": "b"}}
    contrast = Contrast(name="c", claim="c", response="mean_ms", **sides)
    warnings = too_few_blocks([contrast] * claims, blocks)
    assert len(warnings) == bool(words)
    assert all(words in warning.text for warning in warnings)
    assert not too_few_blocks([], blocks)
