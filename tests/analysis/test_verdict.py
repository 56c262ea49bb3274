"""The one rule, case by case."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.treatments.findings import published_text
from perflab.analysis.treatments.verdict import Outcome, judge
from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.systems.chat.experiments.serialization import SerializationParameters

NAN = math.nan


def effect(low: float, ratio: float, high: float, n: int = 6) -> Effect:
    return Effect(ratio, low, high, 0.95, n, 0.03, "planted")


def contrast(ratio=None, direction=None, not_testable: str = "", **changes) -> Contrast:
    fields = {
        "name": "c",
        "claim": "claim",
        "response": "throughput_rps",
        "numerator": {},
        "denominator": {},
        "published_ratio": ratio,
        "published_direction": direction,
        "source": "study",
        "not_testable": not_testable,
    }
    return Contrast(**{**fields, **changes})


CASES = [
    # published ratio, direction, measured interval around its estimate, verdict
    (1.6, "greater", (1.45, 1.58, 1.70), "reproduced"),
    (1.6, None, (1.05, 1.30, 1.60), "reproduced"),
    (1.6, "greater", (1.02, 1.05, 1.08), "reproduced in direction"),
    (1.6, "greater", (1.20, 1.25, 1.50), "reproduced in direction"),  # E below P/2
    (1.6, "greater", (3.0, 3.5, 4.0), "reproduced in direction"),
    (1.6, "greater", (0.98, 1.05, 1.20), "not reproduced"),  # less than half the size
    (1.6, "greater", (0.80, 1.10, 1.50), "inconclusive"),
    (1.6, "greater", (0.60, 0.70, 0.90), "not reproduced"),
    (0.66, "smaller", (0.60, 0.67, 0.70), "reproduced"),
    (0.66, None, (0.90, 0.93, 0.96), "reproduced in direction"),
    (0.66, "smaller", (0.95, 1.00, 1.05), "not reproduced"),
    (0.66, "smaller", (0.70, 0.90, 1.05), "inconclusive"),
    (0.66, "smaller", (1.20, 1.40, 1.50), "not reproduced"),
    (None, "greater", (1.01, 1.2, 1.4), "reproduced in direction"),
    (None, "greater", (0.9, 1.2, 1.4), "inconclusive"),
    (None, "greater", (0.5, 0.6, 0.7), "not reproduced"),
    (None, "smaller", (0.5, 0.6, 0.7), "reproduced in direction"),
    (None, "smaller", (1.1, 1.2, 1.4), "not reproduced"),
    (None, "none", (0.95, 1.0, 1.05), "reproduced"),
    (1.0, None, (0.95, 1.0, 1.05), "reproduced"),
    (1.04, None, (0.97, 1.0, 1.03), "reproduced"),
    (1.04, "greater", (0.97, 1.0, 1.01), "reproduced"),
    (1.04, "none", (0.97, 1.0, 1.03), "reproduced"),
    (0.96, "smaller", (1.01, 1.02, 1.03), "reproduced"),
    (1.04, None, (1.2, 1.3, 1.4), "not reproduced"),
    (1.04, "greater", (1.2, 1.3, 1.4), "reproduced in direction"),
    (1.04, "greater", (1.05, 1.09, 1.3), "reproduced in direction"),
    (1.04, "greater", (0.7, 0.8, 0.85), "not reproduced"),
    (0.96, "smaller", (0.7, 0.8, 0.85), "reproduced in direction"),
    (1.04, "greater", (0.9, 1.0, 1.01), "inconclusive"),
    (1.1, None, (0.97, 1.0, 1.03), "reproduced"),
    (1.12, None, (0.97, 1.0, 1.03), "not reproduced"),
    (None, "none", (1.2, 1.3, 1.4), "not reproduced"),
    (None, "none", (0.5, 0.6, 0.7), "not reproduced"),
    (None, "none", (1.05, 1.08, 1.2), "inconclusive"),
    (None, "none", (0.5, 1.0, 2.0), "inconclusive"),
    (None, None, (1.2, 1.3, 1.4), "nothing published"),
]


@pytest.mark.parametrize(("ratio", "direction", "measured", "verdict"), CASES)
def test_the_rule(ratio, direction, measured, verdict: str) -> None:
    found = judge(effect(*measured), contrast(ratio, direction))
    assert str(found) == verdict
    assert found.reason


def test_the_verdicts_are_exactly_these() -> None:
    assert {outcome.value for outcome in Outcome} == {
        "reproduced",
        "reproduced in direction",
        "not reproduced",
        "inconclusive",
        "not testable here",
        "nothing published",
    }


def test_what_the_machine_cannot_test_is_not_judged() -> None:
    found = judge(effect(1.5, 1.6, 1.7), contrast(1.6, not_testable="needs four cores"))
    assert str(found) == "not testable here"
    assert found.reason == "needs four cores"


POINTS = [
    # published difference, direction, measured interval around its estimate, verdict
    (0.7, "greater", (0.60, 0.65, 0.69), "reproduced"),
    (0.7, None, (0.45, 0.48, 0.51), "reproduced in direction"),
    (0.7, "greater", (0.64, 1.5, 2.4), "reproduced in direction"),  # E above 2P
    (0.7, "greater", (-0.1, 0.1, 0.3), "not reproduced"),  # less than half the size
    (0.7, "greater", (-0.1, 0.2, 0.5), "inconclusive"),
    (0.7, "greater", (-0.5, -0.3, -0.1), "not reproduced"),
    (-0.2, "smaller", (-0.25, -0.19, -0.15), "reproduced"),
    (-0.2, None, (0.05, 0.1, 0.2), "not reproduced"),
    (None, "greater", (0.01, 0.2, 0.3), "reproduced in direction"),
    (None, "greater", (-0.1, 0.2, 0.3), "inconclusive"),
    (None, "smaller", (0.01, 0.2, 0.3), "not reproduced"),
    (None, None, (0.01, 0.2, 0.3), "nothing published"),
]


@pytest.mark.parametrize(("published", "direction", "measured", "verdict"), POINTS)
def test_the_rule_for_differences(published, direction, measured, verdict: str) -> None:
    claim = contrast(None, direction, scale="difference", published_difference=published)
    assert str(judge(effect(*measured), claim)) == verdict


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"published_difference": 0.7}, "needs scale 'difference'"),
        ({"scale": "difference", "published_ratio": 1.5}, "published_difference"),
        ({"scale": "difference", "published_direction": "none"}, "no effect"),
        ({"scale": "difference", "published_difference": 0.0}, "no effect"),
        (
            {
                "scale": "difference",
                "published_difference": -0.7,
                "published_direction": "greater",
            },
            "is not 'greater' than 0",
        ),
    ],
)
def test_a_difference_that_contradicts_itself_is_refused(fields, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        contrast(**fields)


@pytest.mark.parametrize("measured", [None, effect(1.5, 1.6, 1.7, n=2), effect(NAN, 1.6, NAN, n=1)])
def test_too_little_data_is_inconclusive(measured) -> None:
    assert str(judge(measured, contrast(1.6))) == "inconclusive"


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(1.001, 2), st.floats(1.001, 2))
def test_turning_ratio_and_claim_around_does_not_change_the_verdict(
    published: float, ratio: float, down: float, up: float
) -> None:
    one = judge(effect(ratio / down, ratio, ratio * up), contrast(published))
    other = judge(effect(1 / (ratio * up), 1 / ratio, down / ratio), contrast(1 / published))
    assert one.outcome == other.outcome


def test_a_contrast_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'smaller' than 1"):
        contrast(1.6, "smaller")


def test_a_published_ratio_near_1_is_still_shown() -> None:
    assert published_text(contrast(1.04, "none")) == "1.04"


def test_the_codec_study_calls_close_times_no_difference_by_the_same_rule() -> None:
    for claim in experiment("serialization").contrasts(SerializationParameters()):
        assert claim.published_ratio is not None
        close = claim.published_direction == "none"
        assert close == (1 / 1.1 <= claim.published_ratio <= 1.1) == ("as long as" in claim.claim)
