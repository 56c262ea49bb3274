"""The rule of verdicts, case by case."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perflab.analysis.decision import decide
from perflab.analysis.results import AgainstStudy
from perflab.analysis.verdict import compared, judge, without_effect
from perflab.recordings import Contrast, Response
from perflab.statistics.comparison import Effect
from perflab.statistics.families import Corrected
from tests.support.simulations.verdicts import claim

NAN = math.nan


def effect(low: float, ratio: float, high: float, n: int = 6, *, ratios: bool = True) -> Effect:
    """Return an effect whose 90% interval is nine tenths as wide, on the scale of the blocks."""
    on, back = (math.log, math.exp) if ratios else (float, float)
    inner = [back(on(ratio) + 0.9 * (on(end) - on(ratio))) for end in (low, high)]
    return Effect(ratio, low, high, 0.95, n, 0.03, narrow_low=inner[0], narrow_high=inner[1])


def contrast(ratio=None, direction=None, **changes) -> Contrast:
    published = {"published_ratio": ratio, "published_direction": direction}
    return claim(**{**published, **changes})


AS_PUBLISHED, LESS, MORE, IN_DIRECTION, OTHER_WAY, NO_EFFECT, NOT_DECIDED, *_ = AgainstStudy
CASES = [
    # published ratio, direction, measured interval around its estimate, result
    (1.6, "greater", (1.45, 1.58, 1.70), AS_PUBLISHED),
    (1.6, None, (1.45, 1.58, 1.70), AS_PUBLISHED),
    (1.6, "greater", (1.35, 1.58, 1.89), AS_PUBLISHED),  # the ends of the zone
    (1.6, None, (1.05, 1.30, 1.60), IN_DIRECTION),
    (1.6, "greater", (1.11, 1.15, 1.30), LESS),
    (1.6, "greater", (2.1, 3.5, 4.0), MORE),
    (1.6, "greater", (0.98, 1.05, 1.20), LESS),
    (1.6, "greater", (0.98, 1.0, 1.02), NO_EFFECT),
    (1.6, "greater", (0.80, 1.10, 1.50), NOT_DECIDED),
    (1.6, "greater", (0.60, 0.70, 0.90), OTHER_WAY),
    (3.0, "greater", (1.83, 2.0, 2.19), LESS),
    (0.66, "smaller", (0.60, 0.67, 0.70), AS_PUBLISHED),
    (0.66, None, (0.90, 0.93, 0.96), LESS),
    (0.66, None, (0.30, 0.33, 0.36), MORE),
    (0.66, "smaller", (1.20, 1.40, 1.50), OTHER_WAY),
    # A third of its log either way: a true 4% is no published 13%, nor 28% a published 60%.
    (1.13, "greater", (1.03, 1.04, 1.05), LESS),
    (1.13, "greater", (1.09, 1.13, 1.17), AS_PUBLISHED),
    (1.15, "greater", (0.98, 1.10, 1.20), NOT_DECIDED),
    (1.15, None, (0.98, 1.10, 1.20), NOT_DECIDED),
    (None, "greater", (1.01, 1.2, 1.4), IN_DIRECTION),
    (None, "greater", (0.9, 1.2, 1.4), NOT_DECIDED),
    (None, "greater", (0.98, 1.0, 1.02), NO_EFFECT),
    (None, "greater", (0.5, 0.6, 0.7), OTHER_WAY),
    (None, "smaller", (1.1, 1.2, 1.4), OTHER_WAY),
    (None, "none", (0.95, 1.0, 1.05), AS_PUBLISHED),
    (None, "none", (1.2, 1.3, 1.4), MORE),
    (None, "none", (1.05, 1.08, 1.2), NOT_DECIDED),
    (None, "none", (0.5, 1.0, 2.0), NOT_DECIDED),
    (1.04, "none", (0.97, 1.0, 1.03), AS_PUBLISHED),
    # Within 10% of 1 and no direction claimed: the size alone.
    (1.0, None, (0.97, 1.0, 1.03), AS_PUBLISHED),
    (1.04, None, (1.02, 1.04, 1.07), AS_PUBLISHED),
    (1.02, None, (1.20, 1.24, 1.29), MORE),
    (1.02, None, (1.05, 1.10, 1.19), NOT_DECIDED),
    (1.02, None, (0.80, 0.85, 0.90), OTHER_WAY),
    # Within 10% of 1 and a direction claimed: both.
    (1.04, "greater", (1.01, 1.04, 1.07), AS_PUBLISHED),
    (1.04, "greater", (0.97, 1.0, 1.03), NO_EFFECT),
    (1.04, "greater", (1.2, 1.3, 1.4), MORE),
    (0.96, "smaller", (1.01, 1.02, 1.03), OTHER_WAY),
    (1.1, "greater", (1.06, 1.1, 1.14), AS_PUBLISHED),
]


@pytest.mark.parametrize(("ratio", "direction", "measured", "result"), CASES)
@pytest.mark.promise
def test_the_rule(ratio, direction, measured, result: AgainstStudy) -> None:
    judged = judge(effect(*measured), contrast(ratio, direction))
    assert judged.result is result
    assert judged.reason


# What a narrower interval may show where the wider one within which it lies shows something.
NARROWER = {
    AS_PUBLISHED: {AS_PUBLISHED},
    IN_DIRECTION: {IN_DIRECTION, AS_PUBLISHED, LESS, MORE},
    LESS: {LESS, NO_EFFECT, OTHER_WAY},
    MORE: {MORE},
    OTHER_WAY: {OTHER_WAY},
    NO_EFFECT: {*AgainstStudy} - {NOT_DECIDED, MORE},
    NOT_DECIDED: {*AgainstStudy},
}

logs = st.floats(-2, 2)
widths = st.floats(0.001, 1.5)
claims = st.one_of(
    st.floats(0.2, 5).map(contrast),
    st.floats(1.001, 5).map(lambda ratio: contrast(ratio, "greater")),
    st.sampled_from(["greater", "smaller", "none"]).map(lambda way: contrast(None, way)),
)


def interval(centre: float, outer: tuple[float, float], inner: tuple[float, float], n=8) -> Effect:
    """Return an effect from its log ratio and how far its intervals reach, down and up."""
    (low, high), (narrow_low, narrow_high) = (
        (math.exp(centre - down), math.exp(centre + up)) for down, up in (outer, inner)
    )
    return Effect(
        math.exp(centre), low, high, 0.95, n, 0.03,
        narrow_low=narrow_low, narrow_high=narrow_high,
    )  # fmt: skip


@given(
    claims, logs, st.tuples(widths, widths), st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.tuples(st.floats(0, 1), st.floats(0, 1)), st.floats(0, 0.1), st.floats(0, 0.1),
)  # fmt: skip
# Found at random once: a wide interval that only touches the zone, with its centre outside.
@example(contrast(1.6, "greater"), math.log(1.2), (0.1, 0.5), (0.9, 0.9), (0.0, 0.0), 0.01, 0.0)
@pytest.mark.promise
def test_a_wider_interval_says_nothing_that_a_narrower_one_does_not(
    claim, centre, outer, inner_shares, shrunk, p, more
) -> None:
    inner = tuple(width * share for width, share in zip(outer, inner_shares, strict=True))
    narrow_outer = tuple(width * share for width, share in zip(outer, shrunk, strict=True))
    narrow_inner = tuple(map(min, inner, narrow_outer))
    wide = judge(interval(centre, outer, inner), claim, Corrected(p, p + more, 3))
    narrow = judge(interval(centre, narrow_outer, narrow_inner), claim, Corrected(p, p, 3))
    assert narrow.result in NARROWER[wide.result]
    assert narrow.is_shown >= wide.is_shown


@pytest.mark.parametrize(
    ("ratio", "direction", "measured", "alone", "beside_others"),
    [
        (1.6, "greater", (1.45, 1.58, 1.70), AS_PUBLISHED, NOT_DECIDED),
        (None, "greater", (1.1, 1.2, 1.3), IN_DIRECTION, NOT_DECIDED),
        (None, "greater", (0.5, 0.6, 0.7), OTHER_WAY, NOT_DECIDED),
        (1.6, "greater", (1.05, 1.1, 1.2), LESS, LESS),
    ],
)
@pytest.mark.promise
def test_a_direction_needs_the_p_value_adjusted_for_the_claims_of_the_run(
    ratio, direction, measured, alone: AgainstStudy, beside_others: AgainstStudy
) -> None:
    claim = contrast(ratio, direction)
    assert judge(effect(*measured), claim, Corrected(0.01, 0.05, 5)).result is alone
    verdict = judge(effect(*measured), claim, Corrected(0.01, 0.12, 12))
    assert (verdict.result, verdict.is_shown) == (beside_others, False)
    words = "the interval excludes 1 (no effect), but p, adjusted for 12 claims, is 0.12"
    assert words in verdict.reason


@pytest.mark.promise
def test_what_the_load_sets_is_never_found() -> None:
    claim = contrast(1.6, set_by_load="the load was made from it")
    for verdict in (judge(effect(1.5, 1.6, 1.7), claim), without_effect(claim, "no trial")):
        assert str(verdict) == "not testable here (set by the load)"
        assert (verdict.reason, verdict.is_shown) == ("the load was made from it", False)


POINTS = [
    # published difference, direction, measured interval around its estimate, verdict
    (0.7, "greater", (0.60, 0.65, 0.69), AS_PUBLISHED),
    (0.7, "greater", (0.50, 0.70, 0.80), IN_DIRECTION),
    (0.7, None, (0.45, 0.48, 0.51), LESS),
    (0.7, "greater", (0.64, 1.5, 2.4), IN_DIRECTION),
    (0.7, "greater", (-0.1, 0.1, 0.3), LESS),
    (0.7, "greater", (-0.05, 0.01, 0.06), NO_EFFECT),
    (0.7, "greater", (-0.1, 0.2, 0.6), NOT_DECIDED),
    (0.7, "greater", (-0.5, -0.3, -0.1), OTHER_WAY),
    (-0.2, "smaller", (-0.24, -0.19, -0.17), AS_PUBLISHED),
    (-0.2, None, (0.05, 0.1, 0.2), OTHER_WAY),
    (None, "greater", (0.01, 0.2, 0.3), IN_DIRECTION),
    (None, "greater", (-0.1, 0.2, 0.3), NOT_DECIDED),
    (None, "greater", (0.0, 0.0, 0.0), NO_EFFECT),
    (None, "greater", (0.0, 0.0, 0.1), NOT_DECIDED),
    (None, "smaller", (0.01, 0.2, 0.3), OTHER_WAY),
]


@pytest.mark.parametrize(("published", "direction", "measured", "result"), POINTS)
def test_the_rule_for_differences(published, direction, measured, result: AgainstStudy) -> None:
    claim = contrast(None, direction, scale="difference", published_difference=published)
    assert judge(effect(*measured, ratios=False), claim).result is result


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ratio": 1.6, "direction": "smaller"}, "not 'smaller' than 1"),
        ({"published_difference": 0.7}, "it needs another scale"),
        ({"scale": "difference", "published_ratio": 1.5}, "published_difference"),
        ({"scale": "difference", "published_difference": 0.0}, "no effect"),
    ],
)
def test_a_contrast_that_contradicts_itself_is_refused(fields, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        contrast(**fields)


@pytest.mark.parametrize(
    "measured",
    [
        effect(1.5, 1.6, 1.7, n=2),
        Effect(1.6, NAN, NAN, NAN, 1, NAN),
    ],
)
@pytest.mark.promise
def test_too_little_data_is_not_decided(measured) -> None:
    assert judge(measured, contrast(1.6)).result is NOT_DECIDED


@pytest.mark.parametrize(
    ("better", "measured", "p", "words"),
    [
        ("more", (1.2, 1.3, 1.4), 0.01, "better"),
        ("less", (1.2, 1.3, 1.4), 0.01, "worse"),
        ("less", (1.2, 1.3, 1.4), 0.06, "not decided"),
        ("less", (0.98, 1.0, 1.02), 0.5, "same (within 3%)"),
        # Certain, and too small to matter.
        ("less", (1.005, 1.01, 1.015), 0.01, "same (within 3%)"),
        ("less", (0.8, 1.0, 1.2), 0.5, "not decided"),
        ("neither", (0.6, 0.7, 0.8), 0.01, "less"),
    ],
)
@pytest.mark.promise
def test_two_sides_of_which_nothing_is_published(better, measured, p, words: str) -> None:
    found = replace(effect(*measured), by_block=(0.1, 0.2, 0.3, 0.2, 0.1, 0.2))
    decision = decide(found, Corrected(p, p, 2))
    response = Response(name="cost", title="cost", better=better)
    assert str(compared(found, contrast(), response, decision, p)) == words


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(1.001, 2), st.floats(1.001, 2))
def test_inverting_ratio_and_claim_does_not_change_the_verdict(
    published: float, ratio: float, down: float, up: float
) -> None:
    one = judge(effect(ratio / down, ratio, ratio * up), contrast(published))
    other = judge(effect(1 / (ratio * up), 1 / ratio, down / ratio), contrast(1 / published))
    assert one.result is other.result
