"""Captions say of a bound that it is one, and never give it for a value."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from perflab.figures.tables import reread
from perflab.reports.captions import BOUNDS_NOTE, words_of

CLAIM = {
    "claim": "threads end the wait", "scale": "ratio", "quantity": "response time",
    "published": "at most 0.170", "measured": math.nan, "of_blocks": "0.11 0.12 0.1",
    "verdict": "direction shown",
}  # fmt: skip


def caption_of(*rows: dict[str, object]) -> tuple[str, str]:
    words = words_of("what is shown", reread(pd.DataFrame(rows)), {}, "n = 3 valid trials", "")
    return words.caption, words.alt


@pytest.mark.parametrize(
    ("scale", "low", "high", "told"),
    [
        ("ratio", 0.0, 0.1201, "at most 0.121"),
        ("ratio", 3.109, math.inf, "at least 3.10"),
        ("difference", -math.inf, -2.0, "at most -2.00"),
        ("difference", 2.0, math.inf, "at least 2.00"),
    ],
)
def test_a_claim_of_which_only_a_bound_is_known_says_so(
    scale: str, low: float, high: float, told: str
) -> None:
    caption, alt = caption_of({**CLAIM, "scale": scale, "low": low, "high": high})
    assert f"{scale} of response time {told}, published at most 0.170, n = 3" in caption
    assert f"{scale} of response time {told}" in alt
    assert BOUNDS_NOTE.strip() in caption


def test_a_value_with_its_interval_is_no_bound() -> None:
    caption, _ = caption_of({**CLAIM, "measured": 0.12, "low": 0.1, "high": 0.15})
    assert "0.120 [0.100, 0.150]" in caption
    assert BOUNDS_NOTE.strip() not in caption


def test_what_has_neither_value_nor_end_is_a_dash() -> None:
    caption, _ = caption_of({**CLAIM, "low": math.nan, "high": math.nan})
    assert "ratio of response time –" in caption
    assert BOUNDS_NOTE.strip() not in caption


def test_a_typical_value_that_was_cut_off_is_at_least_so_much() -> None:
    known = {"what": "median", "value": 50.0, "low": 48.0, "high": 51.0, "n": 6}
    cut_off = {"what": "median", "value": math.nan, "low": 300.0, "high": math.nan, "n": 6}
    caption, _ = caption_of({"treatment": "threads", **known}, {"treatment": "blocking", **cut_off})
    assert "threads, median: 50.0 [48.0, 51.0], n = 6" in caption
    assert "blocking, median: at least 300, n = 6" in caption


def test_trials_that_were_cut_off_have_a_bound_for_a_median() -> None:
    trials = [{"what": "at least", "duration_s": value} for value in (30.0, 31.0, 32.0)]
    caption, alt = caption_of({"what": "trial", "duration_s": 5.0}, *trials)
    for words in (caption, alt):
        assert "at least: median at least 31.0 s, 3 values cut off" in words
        assert "trial: median 5.00 s" in words
