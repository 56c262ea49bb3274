"""Answers have one of a few forms."""

from __future__ import annotations

import pytest

from perflab.errors import RecordingError
from perflab.reports.ledger.rows import Answered, parse


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
