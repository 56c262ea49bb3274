"""Answers have one of a few forms, and a printed number stands for all values that look like it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import RecordingError
from perflab.reports.ledger.rows import Answered, Interval, digits, exactly, parse, printed


def test_a_contrast_is_taken_apart_into_experiment_parameters_and_name() -> None:
    answer = parse("contrast ladder rungs=a,b share=0.5: b against a, p*")
    assert (answer.kind, answer.experiment, answer.name) == (
        Answered.CONTRAST, "ladder", "b against a, p*",
    )  # fmt: skip
    assert answer.command == "perflab run ladder -p rungs=a,b -p share=0.5"


def test_a_star_covers_contrasts_and_nothing_else_does() -> None:
    answer = parse("contrast ladder: b (x) against a, p*")
    assert answer.covers("b (x) against a, p90")
    assert not answer.covers("b (x) against a, CPU")
    assert not answer.covers("b x against a, p90")


@pytest.mark.parametrize("kind", Answered)
def test_every_form_is_read(kind: Answered) -> None:
    experiment = " crowd" if kind in (Answered.CONTRAST, Answered.VIEW, Answered.SETTING) else ""
    answer = parse(f"{kind}{experiment}: a / b: c / d" if kind else "")
    assert (answer.kind, answer.name) == (kind, "a / b: c / d" if kind else "")


@pytest.mark.parametrize("text", ["contrast: a", "contrast ladder", "reproduced", ": a"])
def test_other_words_are_refused_with_the_forms_that_there_are_and_the_nearest(text: str) -> None:
    with pytest.raises(RecordingError, match="it is one of: contrast EXPERIMENT"):
        parse(text)
    with pytest.raises(RecordingError, match="did you mean 'not comparable'"):
        parse("not comparible: pings")


VALUES = st.floats(0.01, 1e6)
INTERVALS = st.tuples(VALUES, VALUES).map(lambda ends: Interval(min(ends), max(ends)))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(a=INTERVALS, b=INTERVALS, at=st.floats(0, 1), beside=st.floats(0, 1))
def test_what_is_computed_of_intervals_holds_what_is_computed_of_values(a, b, at, beside) -> None:
    x, y = a.low + at * (a.high - a.low), b.low + beside * (b.high - b.low)
    for interval, value in ((a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y)):
        assert interval.meets(exactly(value))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 10**6), st.integers(0, 3))
def test_a_value_lies_among_those_that_are_printed_like_it(number: int, decimals: int) -> None:
    value = number / 10**decimals
    interval = printed(value, "ms")
    assert interval.low <= value * 1e-3 <= interval.high
    assert not interval.meets(exactly((value + 1.01) * 1e-3))


@pytest.mark.parametrize(
    ("value", "unit", "qualifier", "measure", "low", "high"),
    [
        (0.92, "s", "~", "", 0.915, 0.925),
        (320, "requests/s", "~", "", 315, 325),
        (320, "requests/s", "", "", 319.5, 320.5),
        (50, "users", "", "", 50, 50),
        (2, "ms", "", "mean_low", 0.002, 0.002),
        (67, "%", "", "share_low", 0.665, 0.675),
        (37.48, "MiB/s", "", "", 37.475 * 2**20, 37.485 * 2**20),
        (3, "ratio", ">", "", 3, float("inf")),
        (1, "ms", "<", "", float("-inf"), 0.001),
    ],
)
def test_digits_qualifiers_and_units_decide_how_wide(
    value, unit, qualifier, measure, low, high
) -> None:
    interval = printed(value, unit, qualifier, measure)
    assert interval.low == pytest.approx(low)
    assert interval.high == pytest.approx(high)


def test_numbers_are_shown_without_exponents() -> None:
    assert [*map(digits, (1000.0, 39296264.0, 0.0005))] == ["1,000", "39,296,264", "0.0005"]
    assert str(Interval(2, float("inf"))) == "at least 2"
    assert str(Interval(482.5, 483.5)) == "483"
