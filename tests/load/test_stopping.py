"""Stop rules over the progress of a load."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from perflab.load.columns import latency_counts
from perflab.load.stopping import Progress, Watch, percentile_ms
from perflab.load.workload import Objective, StopRules


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_percentiles_of_the_live_histogram_are_within_a_hundredth() -> None:
    values = np.random.default_rng(1).lognormal(15, 1, 100_000).astype(np.int64)
    counts = latency_counts(values)
    for share in (50, 90, 99, 99.9):
        exact = float(np.percentile(values, share)) / 1e6
        assert percentile_ms(counts, share) == pytest.approx(exact, rel=0.01)
    assert np.isnan(percentile_ms({}, 50))


def test_failures_end_a_load_at_their_limit_and_zero_means_never() -> None:
    assert not Watch(StopRules()).see(Progress(finished=9, failed=9))
    watch = Watch(StopRules(failures=3))
    assert not watch.see(Progress(finished=9, failed=2))
    assert watch.see(Progress(finished=9, failed=3))
    assert "3 requests failed" in watch.reason
    assert not watch.see(Progress(finished=9, failed=9)), "a load is ended once"


def test_an_objective_is_judged_over_its_window() -> None:
    clock = Clock()
    rules = StopRules(objectives=(Objective(percentile=90, below_ms=100, window_s=5),))
    watch = Watch(rules, clock)
    fast = Counter(latency_counts(np.full(100, 10**7)))
    slow = Counter(latency_counts(np.full(100, 10**9)))
    for second in range(1, 5):
        clock.now = second
        assert not watch.see(Progress(counts=slow)), "the window is not over yet"
    watch = Watch(rules, clock)
    for second in range(5, 30):
        clock.now = second
        assert not watch.see(Progress(counts=fast))
    clock.now = 30
    assert watch.see(Progress(counts=slow))
    assert watch.reason.startswith("p90 was 1000 ms over the last 5 s")


@pytest.mark.parametrize(("share", "needed"), [(99, 368), (95, 72), (99.9, 3688)])
def test_an_objective_ends_no_load_on_a_percentile_that_its_window_cannot_support(
    share: float, needed: int
) -> None:
    clock = Clock()
    objective = Objective(percentile=share, below_ms=100, window_s=5)
    watch = Watch(StopRules(objectives=(objective,)), clock)
    clock.now = 6
    slow = Counter(latency_counts(np.full(needed - 1, 10**9)))
    assert not watch.see(Progress(counts=slow))
    assert watch.missed == ()
    assert watch.see(Progress(counts=Counter(latency_counts(np.full(1, 10**9)))))
    assert watch.missed == (objective.text,)


def test_progress_adds_up_over_workers() -> None:
    parts = [Progress(1, 2, 3, 4, Counter({1: 1})), Progress(10, 20, 30, 40, Counter({1: 2, 5: 1}))]
    assert Progress.total(parts) == Progress(11, 22, 33, 44, Counter({1: 3, 5: 1}))
