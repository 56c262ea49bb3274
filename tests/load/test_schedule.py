"""Arrival schedules: exact if constant, with the right distribution if random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perflab.load.workload import Burst, OpenLoop, Stage
from perflab.load.workload.arrivals import instants, planned_count


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
