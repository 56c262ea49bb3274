"""The warm-up ends where nothing falls any more, and a fast plain service waits no longer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perflab.load.workload import ClosedLoop, OpenLoop, Request, Scripted, Stage, Workload
from perflab.trials.plan import timed
from perflab.trials.warming import FLAT, LEAST, MOST, STEP_S, Course, latest_fall, warm_after

NOISE = 0.02


def found(course: Callable[[np.ndarray], np.ndarray], seed: int, noise: float = NOISE) -> int:
    """Return after how many windows a noisy course counts as warm; MOST if never."""
    values = course((np.arange(MOST) + 0.5) * STEP_S)
    values = values * np.exp(np.random.default_rng(seed).normal(0, noise, MOST))
    ends = (warm_after(values[:count].tolist()) for count in range(1, MOST + 1))
    return next((end for end in ends if end is not None), MOST)


def test_a_flat_course_is_warm_after_the_least_time_in_nearly_all_cases() -> None:
    ends = [found(np.ones_like, seed) for seed in range(200)]
    assert np.mean([end > LEAST for end in ends]) <= 0.05


def test_a_course_that_falls_is_warm_only_when_little_is_left() -> None:
    ends = [found(lambda t: 1 + np.exp(-t / 1.0), seed) for seed in range(50)]
    left = np.exp(-np.array(ends) * STEP_S / 1.0)
    assert np.median(left) <= 0.1
    assert left.max() <= 0.25


def test_a_step_down_is_found_if_it_comes_before_the_flat_part_is_long_enough() -> None:
    ends = {found(lambda t: np.where(t < 2.0, 1.5, 1.0), seed, 0.005) for seed in range(20)}
    assert ends <= {round(2.0 / STEP_S), round(2.0 / STEP_S) + 1}


@pytest.mark.promise
@pytest.mark.parametrize(("first_ms", "last_ms"), [(3.5, 0.5), (2.0, 1.0)])
def test_a_slow_and_steady_fall_is_not_called_warm(first_ms: float, last_ms: float) -> None:
    """Over 45 s, of which 20 are looked at: in a second it falls by less than noise often is."""

    def falling(t: np.ndarray) -> np.ndarray:
        return first_ms - (first_ms - last_ms) * t / 45

    assert {found(falling, seed, 0.001) for seed in range(20)} == {MOST}
    course = falling((np.arange(MOST) + 0.5) * STEP_S).tolist()
    assert Course(course, course).still_falls() > 0.05


def test_few_windows_tell_nothing_and_both_numbers_must_be_flat() -> None:
    assert warm_after([1.0] * (LEAST + FLAT - 1)) is None
    assert warm_after([1.0] * (LEAST + FLAT)) == LEAST
    falls = [2.0, 1.8, 1.6, 1.4, 1.2, 1.0]
    assert Course([1.0] * 6, falls).windows() is None
    assert Course([1.0] * 6, [1.0] * 6).windows() == LEAST
    # A service that runs already has no CPU time that the lab knows.
    assert Course([1.0] * 6, [0.0] * 6).windows() == LEAST


def test_what_has_not_stopped_falling_at_the_end_is_told_by_its_share() -> None:
    assert latest_fall(np.exp(-np.arange(MOST) * 0.02).tolist()) == pytest.approx(0.18, abs=0.02)
    assert latest_fall([1.0] * MOST) == 0.0


LOADS = (
    ClosedLoop(users=2, duration_s=3.0, warmup_s=1.0, max_duration_s=4.0),
    OpenLoop(stages=(Stage(rate=50, duration_s=4.0),), warmup_s=1.0),
    Scripted(script="a:B", users=2, duration_s=3.0, warmup_s=1.0),
)


@pytest.mark.parametrize("arrivals", LOADS, ids=lambda load: load.kind)
@pytest.mark.parametrize(("asked_s", "counted_s"), [(None, 3.0), (0.5, 0.5)])
def test_a_load_has_another_warm_up_and_what_counts_is_as_long_as_asked_for(
    arrivals: ClosedLoop | OpenLoop | Scripted, asked_s: float | None, counted_s: float
) -> None:
    changed = timed(Workload(request=Request(node="echo"), arrivals=arrivals), 12.0, asked_s)
    load = Workload.model_validate(changed.model_dump()).arrivals
    assert isinstance(load, ClosedLoop | OpenLoop | Scripted)
    assert load.warmup_s == 12.0
    assert load.duration_s == counted_s + 12.0 * isinstance(load, OpenLoop)
    assert getattr(load, "max_duration_s", 12.0 + counted_s) == 12.0 + counted_s


def test_a_load_of_a_number_of_requests_gets_a_length_instead() -> None:
    by_count = ClosedLoop(users=2, requests=500, warmup_requests=9, keep_up=True)
    changed = timed(Workload(request=Request(node="echo"), arrivals=by_count), 1.0, 3.0)
    by_length = ClosedLoop(users=2, duration_s=3.0, warmup_s=1.0, max_duration_s=4.0)
    assert changed.arrivals == by_length


def test_where_noise_hides_a_fall_more_windows_must_tell() -> None:
    noisy = np.exp(np.random.default_rng(3).normal(0, 0.15, MOST)).tolist()
    assert warm_after(noisy[: LEAST + FLAT]) is None
    assert warm_after(noisy) == LEAST
