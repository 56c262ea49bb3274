"""A ratio to requests that were cut off is a bound, in effects and in verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.analysis.decision import decide
from perflab.analysis.results import AgainstStudy, Compared
from perflab.analysis.verdict import judge
from perflab.errors import AnalysisError
from perflab.recordings import Contrast
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, bounded, effect_of
from perflab.statistics.in_words import at_least, at_most
from tests.support.examples import examples
from tests.support.synthetic import ON_AND_OFF, contrast_of

PUBLISHED = {
    "response": "mean_ms", "published_ratio": 0.17, "published_direction": "smaller",
    "published_bound": "at most", "claim": "threads end the wait",
}  # fmt: skip


def claim(**changes: Any) -> Contrast:
    return contrast_of(*ON_AND_OFF, **{**PUBLISHED, **changes})


def series(values: Sequence[float]) -> pd.Series[Any]:
    return pd.Series(values, index=range(len(values)), dtype=float)


def at_most_of(*ratios: float) -> Effect:
    """Return the effect of blocks whose ratios are at most these."""
    return bounded(Ends(series([-math.inf] * len(ratios)), series([*map(math.log, ratios)])))


@pytest.mark.parametrize(
    ("ends", "side", "limits", "shows"),
    [
        (Ends(series([-math.inf] * 8), series(range(-9, -1))), "at most", (-math.inf, -2), True),
        (Ends(series([-math.inf] * 8), series(range(-4, 4))), "at most", (-math.inf, 3), False),
        (Ends(series(range(2, 10)), series([math.inf] * 8)), "at least", (2, math.inf), True),
        (Ends(series(range(-4, 4)), series([math.inf] * 8)), "at least", (-4, math.inf), False),
    ],
)
def test_a_difference_to_requests_that_were_cut_off_is_open_on_one_side(
    ends: Ends, side: str, limits: tuple[float, float], shows: bool
) -> None:
    effect = bounded(ends, "difference")
    assert effect.bound == side
    assert math.isinf(effect.low if side == "at most" else effect.high)
    assert limits[0] <= effect.low <= effect.high <= limits[1]
    assert (effect.p_value < 0.05) == shows
    plain = effect_of(ends.high if side == "at most" else ends.low, scale="difference")
    narrow = (effect.low, plain.narrow_high), (plain.narrow_low, effect.high)
    assert (effect.narrow_low, effect.narrow_high) == narrow[side == "at least"]


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=6, max_size=10),
    st.data(),
    st.sampled_from(["at most", "at least"]),
)
@pytest.mark.promise
def test_a_bound_is_never_tighter_than_the_interval_of_the_values_behind_it(
    values: list[float], data: st.DataObject, side: str
) -> None:
    sign = 1 if side == "at most" else -1
    shifts = [sign * data.draw(st.floats(0, 2)) for _ in values]
    loose = series([value + shift for value, shift in zip(values, shifts, strict=True)])
    ends = Ends(series([-math.inf] * len(values)), loose)
    if side == "at least":
        ends = Ends(loose, series([math.inf] * len(values)))
    exact, bound = effect_of(series(values)), bounded(ends)
    assert bound.bound == side
    if side == "at most":
        assert exact.high <= bound.high * (1 + 1e-9)
        assert exact.narrow_high <= bound.narrow_high * (1 + 1e-9)
    else:
        assert exact.low >= bound.low * (1 - 1e-9)
    # If the bound shows an effect, the values do too.
    if bound.p_value <= 0.05:
        assert exact.p_value <= 0.05


def test_requests_cut_off_on_both_sides_give_no_effect() -> None:
    cut = Ends(series([1.0, 1.0, 1.0]), series([math.inf] * 3)).logs("x")
    with pytest.raises(AnalysisError, match="only bounds are known on both sides"):
        bounded(cut.minus(cut))
    without_values = Ends(series([math.nan] * 3), series([math.nan] * 3))
    with pytest.raises(AnalysisError, match="nothing to compare"):
        bounded(without_values)


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        # The bound of the ratio is 0.19.
        ({}, AgainstStudy.AS_PUBLISHED),
        ({"published_bound": ""}, AgainstStudy.IN_DIRECTION),
        ({"published_bound": "", "published_ratio": 0.9}, AgainstStudy.MORE),
        ({"published_ratio": 0.02}, AgainstStudy.IN_DIRECTION),
        ({"published_ratio": None, "published_bound": ""}, AgainstStudy.IN_DIRECTION),
        (
            {"published_ratio": 2.0, "published_direction": "greater", "published_bound": ""},
            AgainstStudy.OTHER_WAY,
        ),
    ],
)  # fmt: skip
def test_a_bound_shows_a_direction_excludes_a_size_and_agrees_only_with_a_published_bound(
    changes: dict[str, Any], result: AgainstStudy
) -> None:
    verdict = judge(at_most_of(0.15, 0.16, 0.165, 0.17, 0.18, 0.19), claim(**changes))
    assert verdict.result is result


@pytest.mark.promise
def test_a_bound_above_no_effect_shows_nothing() -> None:
    effect = at_most_of(1.25, 1.3, 1.33, 1.36, 1.4, 1.45)
    assert effect.limit > 1
    assert effect.p_value == 1.0
    assert judge(effect, claim()).result is AgainstStudy.NOT_DECIDED
    assert decide(effect).result is Compared.NOT_DECIDED


def test_an_exact_effect_agrees_with_a_published_bound_that_it_keeps() -> None:
    exact = effect_of(series([math.log(0.1 + 0.001 * number) for number in range(8)]))
    assert judge(exact, claim()).result is AgainstStudy.AS_PUBLISHED
    above = effect_of(series([math.log(0.5 + 0.001 * number) for number in range(8)]))
    assert judge(above, claim()).result is AgainstStudy.LESS
    assert "at most 0.213" in judge(above, claim()).reason


def test_bounds_are_rounded_so_that_they_hold() -> None:
    assert at_most(0.21301) == "<= 0.214"
    assert at_least(0.21399) == ">= 0.213"
    assert at_most(0.21) == "<= 0.210"
    assert at_least(300_932.18) == ">= 300,932"
