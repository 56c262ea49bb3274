"""The order of trials is random, balanced over positions, and decided by the seed alone."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perflab.trials.plan import RunPlan
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
