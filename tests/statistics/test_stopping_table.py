"""Runs that end once all is decided: their error and their length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.simulations.stopping import KINDS, RULE, Place, by_rule, errors, simulated


@pytest.mark.parametrize("kind", KINDS)
def test_equal_treatments_differ_in_one_of_twenty_runs_at_most_however_often_they_are_looked_at(
    kind: str,
) -> None:
    at_blocks, at_looks, of_rule = errors(np.random.default_rng(4), kind, 3000)
    # Three standard errors of so many runs.
    assert of_rule <= 0.05 + 3 * (0.05 * 0.95 / 3000) ** 0.5
    assert at_blocks > at_looks >= 0.07, "the usual test, looked at more often"


def test_a_clear_effect_ends_a_run_early_and_a_doubtful_one_later() -> None:
    random = np.random.default_rng(6)
    clear = by_rule(Place(simulated(random, 1.6, 0.05, 40)), RULE)
    doubtful = by_rule(Place(simulated(random, 1.4, 0.08, 40)), RULE)
    assert clear.decided == 1
    assert clear.blocks < 9
    assert doubtful.blocks > clear.blocks + 2
