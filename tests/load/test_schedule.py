"""From options to arrivals: exact schedules if constant, with the right distribution if random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perflab.errors import ParameterError
from perflab.load.options import LoadOptions
from perflab.load.workload import Burst, Objective, OpenLoop, Stage
from perflab.load.workload.schedule import instants, planned_count


def whole(arrivals: OpenLoop | Burst) -> np.ndarray:
    return np.concatenate(list(instants(arrivals)))


def constant(*stages: Stage, **options: int) -> OpenLoop:
    return OpenLoop(stages=stages, **options)


def poisson(*stages: Stage, **options: int) -> OpenLoop:
    return OpenLoop(stages=stages, arrivals="poisson", **options)


@pytest.mark.parametrize("rate", [1, 7, 12_345, 100_000])
def test_constant_gaps_are_exact_to_the_nanosecond(rate: int) -> None:
    planned = whole(constant(Stage(rate=rate, duration_s=2)))
    expected = np.array([round(number * 1_000_000_000 / rate) for number in range(2 * rate)])
    assert len(planned) == 2 * rate
    assert np.abs(planned - expected).max() <= 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.promise
def test_poisson_gaps_are_exponential_and_independent(seed: int) -> None:
    planned = whole(poisson(Stage(rate=5_000, duration_s=4), seed=seed))
    gaps = np.diff(planned) / 1e9
    assert stats.kstest(gaps, "expon", args=(0, 1 / 5_000)).pvalue > 0.001
    assert abs(stats.pearsonr(gaps[:-1], gaps[1:]).statistic) < 4 / np.sqrt(len(gaps))


@pytest.mark.parametrize("seed", range(2))
def test_a_poisson_ramp_has_its_rate_at_every_instant(seed: int) -> None:
    stages = (Stage(rate=0, to_rate=4_000, duration_s=3), Stage(rate=4_000, duration_s=1))
    planned = whole(poisson(*stages, seed=seed)) / 1e9
    # Given their number, the points of a Poisson process are independent with density rate(t).
    law = np.where(planned < 3, 4_000 / 3 * planned**2 / 2, 6_000 + 4_000 * (planned - 3)) / 10_000
    assert stats.kstest(law, "uniform").pvalue > 0.001


RATES = st.one_of(st.just(0.0), st.floats(0.5, 500))
STAGES = st.lists(
    st.builds(
        Stage,
        rate=RATES,
        to_rate=st.one_of(st.none(), RATES),
        duration_s=st.floats(0.01, 3),
    ),
    min_size=1,
    max_size=4,
).filter(lambda stages: any(stage.rate + stage.end_rate for stage in stages))
LOOPS = st.builds(
    OpenLoop,
    stages=STAGES.map(tuple),
    arrivals=st.sampled_from(["constant", "poisson"]),
    seed=st.integers(0, 1000),
)
BURSTS = st.builds(Burst, size=st.integers(1, 40))
ARRIVALS = st.one_of(LOOPS, LOOPS, BURSTS)


@settings(max_examples=300, deadline=None)
@given(ARRIVALS, st.integers(1, 9))
def test_the_parts_of_the_workers_are_the_whole_schedule(
    arrivals: OpenLoop | Burst, workers: int
) -> None:
    parts = [np.concatenate(list(instants(arrivals, number, workers))) for number in range(workers)]
    together = np.full(sum(map(len, parts)), -1)
    for number, part in enumerate(parts):
        together[number::workers] = part
    assert np.array_equal(together, whole(arrivals))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@settings(max_examples=300, deadline=None)
@given(ARRIVALS)
def test_a_schedule_is_in_order_and_within_its_stages(arrivals: OpenLoop | Burst) -> None:
    planned = whole(arrivals)
    assert planned.dtype == np.int64
    assert (np.diff(planned) >= 0).all()
    assert (planned >= 0).all()
    assert planned_count(arrivals) == len(planned)
    if isinstance(arrivals, OpenLoop):
        assert (planned <= arrivals.duration_s * 1e9 + 1).all()


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
    assert Objective.of_text(str(objective)) == objective


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


def test_an_objective_that_is_no_text_or_stands_twice_is_refused() -> None:
    for objectives, words in ([5], "'5' is not like"), (["p99<1s", "p99<1000ms"], "named twice"):
        with pytest.raises(ParameterError, match=words):
            LoadOptions.of({"url": URL, "users": 1, "objectives": objectives})


def test_objectives_on_times_of_streams_need_a_stream() -> None:
    options = {"url": URL, "users": 1, "objectives": ["ttft_p95<500ms"]}
    with pytest.raises(ParameterError, match="give --stream sse or ndjson"):
        LoadOptions.of(options).workload()
    workload = LoadOptions.of({**options, "stream": "sse", "stop_after_failures": 5}).workload()
    assert [objective.of for objective in workload.objectives] == ["ttft"]
    assert workload.stop.failures == 5
