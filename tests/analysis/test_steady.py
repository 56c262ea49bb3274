"""Warm-ups of known length are cut there, steady trials are left alone, drifts are flagged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from perflab.analysis.curves.changepoints import partition
from perflab.analysis.curves.steady import steady_state, steady_table
from perflab.errors import AnalysisError

RUNS = 80


def ar1(random: np.random.Generator, n: int, rho: float, deviation: float) -> np.ndarray:
    steps = random.normal(0, deviation * math.sqrt(1 - rho**2), n + 50)
    return lfilter([1], [1, -rho], steps)[50:]


def trial(random, n: int, rho: float, deviation: float = 0.1, level=1.0):
    """Return throughput and latency that move against each other, around ``level``."""
    noise = ar1(random, n, rho, deviation)
    own = ar1(random, n, rho, deviation)
    return 500 * level * np.exp(noise), 8 / level * np.exp(own - 0.7 * noise)


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


@pytest.mark.parametrize(("n", "rho"), [(20, 0.0), (40, 0.5), (100, 0.5), (200, 0.0), (200, 0.5)])
def test_a_trial_without_warm_up_is_cut_at_zero(n: int, rho: float) -> None:
    random = np.random.default_rng(n)
    found = [steady_state(*trial(random, n, rho)) for _ in range(RUNS)]
    assert np.mean([each.cut_s == 0 for each in found]) >= 0.95
    assert np.mean([each.kind == "steady" for each in found]) >= 0.93


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
@pytest.mark.parametrize(("n", "rho"), [(40, 0.0), (100, 0.5), (200, 0.5)])
def test_a_planted_warm_up_is_found_within_three_windows(n, rho, factor) -> None:
    random, length = np.random.default_rng(n), n // 5
    found = [
        steady_state(*trial(random, n, rho, level=warming(n, length, factor)), width_s=1.0)
        for _ in range(RUNS)
    ]
    assert np.mean([abs(each.cut_s - length) <= 3 for each in found]) >= 0.9
    assert np.mean([each.kind == "warm-up" and each.settled for each in found]) >= 0.9


def test_latency_alone_shows_the_warm_up_of_an_open_loop() -> None:
    random, n = np.random.default_rng(2), 100
    for _ in range(20):
        latency = trial(random, n, 0.3, level=warming(n, 20, 2.0))[1]
        found = steady_state(random.poisson(200, n), latency)
        assert found.kind == "warm-up"
        assert found.cut_s == pytest.approx(2.0, abs=0.3)
        assert "latency was" in found.reason


def test_a_trial_that_gets_slower_for_good_is_a_slowdown() -> None:
    found = steady_state(*trial(np.random.default_rng(1), 120, 0.2, level=warming(120, 40, 0.6)))
    assert found.kind == "slowdown"
    assert found.cut_s == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize(("n", "rho"), [(100, 0.0), (200, 0.5)])
def test_a_drift_never_settles(n: int, rho: float) -> None:
    random = np.random.default_rng(n)
    drift = np.linspace(1, 1.5, n)
    found = [steady_state(*trial(random, n, rho, level=drift)) for _ in range(RUNS)]
    assert np.mean([each.kind == "never settles" for each in found]) >= 0.9


def test_single_stalls_are_no_change_of_level() -> None:
    random = np.random.default_rng(6)
    steady = 0
    for _ in range(RUNS):
        throughput, latency = trial(random, 100, 0.3)
        where = 20 * np.arange(5) + random.integers(0, 12, 5)
        throughput[where] = 0
        latency[where] *= 50
        steady += steady_state(throughput, latency).cut_s == 0
    assert steady / RUNS >= 0.95


@pytest.mark.parametrize(
    ("throughput", "latency"),
    [
        ([], []),
        ([5.0] * 11, [1.0] * 11),
        ([math.nan] * 50, [math.nan] * 50),
        ([0.0] * 50, [math.nan] * 50),
        ([math.inf] * 50, None),
    ],
)
def test_what_cannot_be_judged_is_not(throughput, latency) -> None:
    found = steady_state(throughput, latency)
    assert (found.kind, found.settled) == ("not judged", False)
    assert math.isnan(found.cut_s)
    assert "windows" in found.reason


def test_the_table_has_a_row_per_trial_and_instants_of_its_clock() -> None:
    random = np.random.default_rng(8)
    frames = []
    for name, length in (("a", 0), ("b", 20)):
        throughput, latency = trial(random, 100, 0.2, level=warming(100, length, 2.0))
        start_ns = 7_000_000_000 + 100_000_000 * np.arange(100)
        frames.append(
            pd.DataFrame(
                {
                    "trial_id": name,
                    "treatment": "x",
                    "start_ns": start_ns,
                    "throughput_rps": throughput,
                    "p50_ms": latency,
                }
            )
        )
    table = steady_table(pd.concat(frames))
    assert list(table["kind"]) == ["steady", "warm-up"]
    assert table["cut_ns"].iloc[1] == pytest.approx(9e9, abs=3e8)
    assert steady_table(pd.concat(frames).head(0)).empty
    with pytest.raises(AnalysisError, match="p99_ms"):
        steady_table(pd.concat(frames), "p99_ms")


@pytest.mark.parametrize(("n", "rho"), [(20, 0.9), (40, 0.8), (120, 0.9), (120, 0.95)])
def test_a_series_that_wanders_around_its_mean_is_steady(n: int, rho: float) -> None:
    """Levels can be fitted to it: without the comparison 40 to 90% of such trials were refused."""
    random = np.random.default_rng(12)
    kinds = [steady_state(*trial(random, n, rho)).kind for _ in range(60)]
    assert kinds.count("steady") / 60 >= 0.85
