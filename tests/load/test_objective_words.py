"""Objectives in words, of answers and of streams."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from perflab.load.capacity import judged
from perflab.load.options import LoadOptions
from perflab.load.workload import Objective
from tests.load.test_capacity import shown

URL = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("text", "of", "percentile", "below_ms"),
    [
        ("p99<1000ms", "response", 99, 1000),
        ("p95 <= 0.5s", "response", 95, 500),
        ("ttft_p95<500ms", "ttft", 95, 500),
        ("gap_p99<0.1s", "gap", 99, 100),
    ],
)
def test_an_objective_is_read_and_said_again(
    text: str, of: str, percentile: float, below_ms: float
) -> None:
    found = Objective.of_text(text)
    assert (found.of, found.percentile, found.below_ms) == (of, percentile, below_ms)
    assert Objective.of_text(found.text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("first<3ms", "is not like"),
        ("ttft_p95", "is not like"),
        ("p0<1ms", "percentiles are above 0"),
        ("ttft_p101<1ms", "percentiles are above 0"),
    ],
)
def test_what_is_no_objective_is_told_how_one_looks(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Objective.of_text(text)


def test_times_of_streams_are_asked_of_streams_alone() -> None:
    asked = {"url": URL, "users": 1, "objectives": ["ttft_p95<500ms"]}
    with pytest.raises(ParameterError, match="give --stream sse or ndjson"):
        LoadOptions.of(asked).workload()
    made = LoadOptions.of({**asked, "stream": "sse"}).workload()
    assert [each.of for each in made.objectives] == ["ttft"]


def test_a_step_is_judged_by_the_times_that_its_objective_is_about() -> None:
    first = {"first_chunk_ms": {"p95": 600.0}, "chunk_gap_ms": {"p99": 90.0}}
    streamed = shown(**first)
    assert judged(100, streamed, [Objective.of_text("ttft_p95<700ms")]).missed == ()
    assert "ttft_p95" in judged(100, streamed, [Objective.of_text("ttft_p95<500ms")]).missed[0]
    assert "gap_p99" in judged(100, streamed, [Objective.of_text("gap_p99<80ms")]).missed[0]
    assert judged(100, streamed, [Objective.of_text("p99<45ms")]).missed == ()


def test_users_who_fell_behind_their_cycle_have_missed_an_objective_that_cannot_be_known() -> None:
    few = shown(first_chunk_ms={"p95": None}, offered_rps=None, throughput_rps=10.0, paced_rps=40.0)
    assert judged(40, few, [Objective.of_text("ttft_p95<500ms")]).missed == ("ttft_p95 unknown",)
