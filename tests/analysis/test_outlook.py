"""How likely more blocks decide a run: checked against runs that were gone on with."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.repeated_looks import planned
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.outlook import (
    NOTHING_OPEN,
    Outlook,
    chance,
    cheapest,
    distance,
)
from perflab.analysis.treatments.verdict import judge
from perflab.recordings import Contrast

RULE = planned(8, 26)


def claim(**published: object) -> Contrast:
    sides = {"numerator": {"service": "a"}, "denominator": {"service": "b"}}
    words = {"name": "a", "claim": "a against b", "response": "throughput_rps", "source": "planted"}
    return Contrast(**{**words, **sides, **published})


@pytest.mark.parametrize(
    ("published", "ratio", "expected"),
    [
        # Only a direction: as far as from no effect.
        ({"published_direction": "greater"}, 1.2, math.log(1.2)),
        # Inside the zone of 1.6 (1.28 to 2): its nearer end.
        ({"published_ratio": 1.6}, 1.4, math.log(1.4 / 1.28)),
        # Below the zone, near 1: the zone's end decides whatever becomes of the direction.
        ({"published_ratio": 1.6}, 1.02, math.log(1.28 / 1.02)),
        # Nothing published: a difference, or none that matters, whichever is farther.
        ({}, 1.0, math.log(1.03)),
        ({}, 1.2, math.log(1.2)),
    ],
)
def test_the_distance_is_to_where_another_decision_would_be_taken(
    published: dict[str, object], ratio: float, expected: float
) -> None:
    assert distance(math.log(ratio), claim(**published)) == pytest.approx(expected)


def test_what_has_no_interval_has_no_decision_in_sight() -> None:
    assert chance(None, claim(), 20) == 0
    few = effect_of(pd.Series([0.1, 0.2, 0.1]), rule=RULE)
    assert chance(few, claim(published_direction="greater"), 20) == 0
    assert math.isinf(Outlook(6, 0.0).price)


def test_chances_are_right_where_runs_are_gone_on_with() -> None:
    """Undecided at the first look: how many are decided with 14 blocks, by what was foretold."""
    random = np.random.default_rng(20_261_123)
    contrast = claim(published_direction="greater")
    foretold, came = [], []
    for _ in range(400):
        logs = random.normal(random.uniform(0, 0.3), 0.2, 14)
        first, second = (effect_of(pd.Series(logs[:n]), rule=RULE) for n in (8, 14))
        if judge(first, contrast).outcome in OPEN:
            foretold.append(chance(first, contrast, 14))
            came.append(judge(second, contrast).outcome not in OPEN)
    likely = np.array(foretold) > np.median(foretold)
    assert np.mean(came) == pytest.approx(np.mean(foretold), abs=0.12)
    assert np.mean(np.array(came)[likely]) > 2 * np.mean(np.array(came)[~likely])


def test_a_decision_is_looked_for_at_the_look_with_the_most_chance_for_its_blocks() -> None:
    random = np.random.default_rng(2)
    greater = claim(published_direction="greater")
    near, far = (
        effect_of(pd.Series(mean + 0.2 * random.standard_normal(8)), rule=RULE)
        for mean in (0.25, 0.04)
    )
    soon, late = (cheapest([(effect, greater)], RULE, 8) for effect in (near, far))
    assert soon.blocks == 6
    assert late.blocks > 6
    assert soon.price < late.price
    # All must be decided: the one that is farther away counts.
    assert cheapest([(near, greater), (far, greater)], RULE, 8) == late
    assert cheapest([], RULE, 8) == NOTHING_OPEN
