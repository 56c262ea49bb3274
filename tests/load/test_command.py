"""From options to a workload: the plan and the objectives follow the options."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.errors import ParameterError
from perflab.load.options import LoadOptions
from perflab.load.workload import Objective, OpenLoop, Stage

URL = "http://127.0.0.1:9/"


def test_a_rate_without_a_count_lasts_its_time() -> None:
    options = {"arrivals": "poisson", "rate": 20.0, "duration": 3.0, "warmup": 2.0, "seed": 7}
    arrivals = LoadOptions.of({"url": URL, **options}).workload().arrivals
    stages = (Stage(rate=20, duration_s=5),)
    assert arrivals == OpenLoop(stages=stages, arrivals="poisson", warmup_s=2, seed=7)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"burst": 5, "duration": 3.0}, "--duration does not go with --burst"),
        ({"burst": 5, "requests": 3}, "--requests does not go with --burst"),
        ({"rate": 5.0, "requests": 3}, "--requests does not go with --rate"),
        ({"stages": "5:10", "duration": 3.0}, "--duration does not go with --stages"),
        ({"users": 5, "arrivals": "poisson"}, "--arrivals poisson needs --rate"),
        ({"users": 5, "script": "a:B", "requests": 3}, "--requests does not go with --script"),
    ],
)
def test_an_unused_option_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        LoadOptions.of({"url": URL, **options}).workload()


@pytest.mark.parametrize(
    ("text", "of", "percentile", "below_ms"),
    [
        ("p99<1000ms", "response", 99, 1000),
        ("p95 <= 0.5s", "response", 95, 500),
        ("ttft_p95<500ms", "ttft", 95, 500),
        ("gap_p99<0.1s", "gap", 99, 100),
    ],
)
def test_an_objective_is_read_and_written_again(
    text: str, of: str, percentile: float, below_ms: float
) -> None:
    objective = Objective.of_text(text)
    assert (objective.of, objective.percentile, objective.below_ms) == (of, percentile, below_ms)
    assert Objective.of_text(objective.text) == objective


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("first<3ms", "is not like"),
        ("ttft_p95", "is not like"),
        ("p0<1ms", "percentiles are above 0"),
        ("ttft_p101<1ms", "percentiles are above 0"),
    ],
)
def test_a_text_that_is_no_objective_is_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Objective.of_text(text)


def test_objectives_on_times_of_streams_need_a_stream() -> None:
    options = {"url": URL, "users": 1, "objectives": ["ttft_p95<500ms"]}
    with pytest.raises(ParameterError, match="give --stream sse or ndjson"):
        LoadOptions.of(options).workload()
    workload = LoadOptions.of({**options, "stream": "sse", "stop_after_failures": 5}).workload()
    assert [objective.of for objective in workload.objectives] == ["ttft"]
    assert workload.stop.failures == 5
