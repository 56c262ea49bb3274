"""How many blocks a run will want: checked against runs that were gone on with."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.outlook import blocks_wanted, distance
from perflab.analysis.treatments.verdict import judge
from perflab.recordings import Contrast, UntilDecided

RULE = UntilDecided(least_blocks=8, most_blocks=40)


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


def test_what_has_no_interval_wants_more_than_anybody_knows() -> None:
    assert math.isinf(blocks_wanted(None, claim()))
    few = effect_of(pd.Series([0.1, 0.2, 0.1]), rule=RULE)
    assert math.isinf(blocks_wanted(few, claim(published_direction="greater")))


def test_blocks_wanted_are_right_within_a_factor_where_runs_are_gone_on_with() -> None:
    """The median over simulated runs of blocks taken over blocks foretold at the tenth."""
    random = np.random.default_rng(20_261_123)
    contrast = claim(published_direction="greater")
    factors = []
    for _ in range(60):
        logs = random.normal(math.log(1.1), 0.15, 40)
        foretold = blocks_wanted(effect_of(pd.Series(logs[:10]), rule=RULE), contrast)
        taken = next(
            (n for n in range(10, 41)
             if judge(effect_of(pd.Series(logs[:n]), rule=RULE), contrast).outcome not in OPEN), 41,
        )  # fmt: skip
        if taken > 10:
            factors.append(min(foretold, 41) / taken)
    assert len(factors) > 20
    assert 0.5 < np.median(factors) < 2
