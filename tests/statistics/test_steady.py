"""Drifts are flagged; steady trials, and those that have a warm-up, are not."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from perflab.statistics.steady_state import never_settles, partition, unsettled

RUNS = 40


def ar1(random: np.random.Generator, n: int, rho: float, deviation: float) -> np.ndarray:
    steps = random.normal(0, deviation * math.sqrt(1 - rho**2), n + 50)
    return lfilter([1], [1, -rho], steps)[50:]


def trial(random, n: int, rho: float, deviation: float = 0.1, level=1.0):
    """Return throughput and latency that move against each other, around ``level``."""
    noise = ar1(random, n, rho, deviation)
    latency_noise = ar1(random, n, rho, deviation)
    return 500 * level * np.exp(noise), 8 / level * np.exp(latency_noise - 0.7 * noise)


def warming(n: int, length: int, factor: float) -> np.ndarray:
    return np.where(np.arange(n) < length, 1 / factor, 1.0)


def test_the_partition_is_the_best_of_all() -> None:
    x = np.random.default_rng(3).normal(size=13) + np.repeat([0, 3, 0], [5, 4, 4])

    def cost(begins: tuple[int, ...]) -> float:
        return sum(((p - p.mean()) ** 2).sum() + 2.0 for p in np.split(x, begins))

    every = [(), *((a,) for a in range(3, 11))]
    every += [(a, b) for a in range(3, 11) for b in range(a + 3, 11)]
    every += [(3, 6, 9), (3, 6, 10), (3, 7, 10), (4, 7, 10)]
    assert tuple(partition(x, 2.0, smallest=3)[1:]) == min(every, key=cost)


def share_unsettled(n: int, rho: float, level: float | np.ndarray = 1.0) -> float:
    random = np.random.default_rng(n)
    return np.mean([bool(never_settles(*trial(random, n, rho, level=level))) for _ in range(RUNS)])


@pytest.mark.parametrize(("n", "rho"), [(20, 0.0), (40, 0.5), (200, 0.0), (200, 0.5)])
def test_a_trial_that_keeps_its_level_settles(n: int, rho: float) -> None:
    assert share_unsettled(n, rho) <= 0.1


@pytest.mark.parametrize("factor", [0.6, 1.5, 3.0])
def test_a_trial_settles_after_its_warm_up_or_slowdown(factor: float) -> None:
    assert share_unsettled(100, 0.5, warming(100, 20, factor)) <= 0.1


@pytest.mark.parametrize(("n", "rho"), [(100, 0.0), (200, 0.5)])
def test_a_drift_never_settles(n: int, rho: float) -> None:
    assert share_unsettled(n, rho, np.linspace(1, 1.5, n)) >= 0.9


@pytest.mark.parametrize(("n", "rho"), [(20, 0.9), (120, 0.9), (120, 0.95)])
def test_a_series_that_wanders_around_its_mean_settles(n: int, rho: float) -> None:
    """Levels fit it too: without the comparison 40 to 90% of such trials were called unsettled."""
    assert share_unsettled(n, rho) <= 0.15


def test_a_level_that_comes_too_late_is_reported() -> None:
    level = warming(100, 85, 2.0)
    assert "its last level fills only" in never_settles(
        *trial(np.random.default_rng(1), 100, 0, level=level)
    )


def test_latency_alone_shows_that_an_open_loop_drifts() -> None:
    random, n = np.random.default_rng(2), 200
    latency = trial(random, n, 0.0, level=np.linspace(1, 1.5, n))[1]
    assert never_settles(random.poisson(200, n), latency).startswith("latency drifts by")


def test_single_stalls_are_no_change_of_level() -> None:
    random = np.random.default_rng(6)
    restless = 0
    for _ in range(RUNS):
        throughput, latency = trial(random, 100, 0.3)
        where = 20 * np.arange(5) + random.integers(0, 12, 5)
        throughput[where] = 0
        latency[where] *= 50
        restless += bool(never_settles(throughput, latency))
    assert restless / RUNS <= 0.075


@pytest.mark.parametrize(
    ("throughput", "latency"),
    [
        ([], []),
        ([*range(11)], [1.0] * 11),
        ([math.nan] * 50, [math.nan] * 50),
        ([0.0] * 50, [math.nan] * 50),
        ([math.inf] * 50, [*range(50)]),
    ],
)
def test_a_trial_that_cannot_be_judged_is_not_called_unsettled(throughput, latency) -> None:
    assert not never_settles(throughput, latency)


def test_trials_that_never_settle_are_counted_by_treatment() -> None:
    random = np.random.default_rng(8)
    frames = []
    for name, drift in (("a", 0.0), ("b", 0.5), ("c", 0.5)):
        throughput, latency = trial(random, 200, 0.0, level=np.linspace(1, 1 + drift, 200))
        columns = {"throughput_rps": throughput, "p50_ms": latency, "start_ns": np.arange(200)}
        frames.append(pd.DataFrame({"trial_id": name, "treatment": f"drift={drift:g}", **columns}))
    table = pd.concat(frames)
    assert unsettled(table) == {"drift=0.5": 2}
    assert not unsettled(table.head(0))
