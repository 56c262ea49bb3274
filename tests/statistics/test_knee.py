"""Planted knees are found and covered; straight lines and noise have none."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from benchmarks.coverage import KNEE, cpu_shares, latency_of, windows_of
from perflab.statistics.knees import knee, times_as_steep

RUNS = 24
# At 95% coverage, fewer than 20 of 24 runs have a probability below 1%, as have more than 4 false
# knees at 5%. benchmarks/coverage.py has 1,000 runs.
LEAST_COVERED = 20
MOST_FALSE = 4


DESIGNS = ["ramps", "loads"]


@pytest.mark.promise
@pytest.mark.parametrize(
    ("kind", "heavy"), [("bent", False), ("bent", True), ("in proportion, bent", False)]
)
@pytest.mark.parametrize("design", DESIGNS)
def test_a_planted_knee_is_found_and_its_interval_covers_it(
    design: str, heavy: bool, kind: str
) -> None:
    random = np.random.default_rng(1)
    fits = []
    for _ in range(RUNS):
        cpu = cpu_shares(random, design)
        fits.append(knee(windows_of(random, cpu, latency_of(kind, cpu), heavy), "cpu"))
    assert all(fit.supported for fit in fits)
    assert heavy or sum(fit.smooth for fit in fits) <= RUNS / 2
    assert all(math.isnan(fit.step) for fit in fits)
    assert sum(fit.low <= KNEE <= fit.high for fit in fits) >= LEAST_COVERED
    assert np.median([fit.high - fit.low for fit in fits]) < 0.15
    assert abs(np.mean([fit.cpu for fit in fits]) - KNEE) < 0.02


@pytest.mark.parametrize(
    ("design", "kind"), [("ramps", "flat"), *product(DESIGNS, ("straight", "in proportion"))]
)
def test_a_straight_line_rarely_has_a_knee(design: str, kind: str) -> None:
    random = np.random.default_rng(2)
    fits = []
    for _ in range(RUNS):
        cpu = cpu_shares(random, design)
        usual_ms = np.full_like(cpu, 5) if kind == "flat" else latency_of(kind, cpu)
        fits.append(knee(windows_of(random, cpu, usual_ms, heavy=False), "cpu"))
    assert sum(fit.supported for fit in fits) <= MOST_FALSE
    straight = next(fit for fit in fits if not fit.supported)
    assert "no upward bend can be shown" in straight.words()
    assert math.isnan(straight.cpu)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("kind", "times"), [("in proportion", 1), ("in proportion, bent", 3), ("bent below", 1)]
)
@pytest.mark.parametrize(("design", "trials"), [("ramps", 12), ("ramps", 6), ("loads", 24)])
def test_how_much_steeper_latency_is_from_a_share_on_is_covered(
    design: str, trials: int, kind: str, times: float
) -> None:
    random = np.random.default_rng(3)
    found = []
    for _ in range(RUNS):
        cpu = cpu_shares(random, design)[:trials]
        below = 10 + 20 * np.maximum(0, cpu - 0.2)
        usual_ms = below if kind == "bent below" else latency_of(kind, cpu)
        windows = windows_of(random, cpu, usual_ms, heavy=False)
        found.append(times_as_steep(windows, "cpu", KNEE))
    assert sum(low <= times <= high for _, low, high in found) >= LEAST_COVERED
    assert np.median([middle for middle, *_ in found]) == pytest.approx(times, rel=0.2)
    assert np.median([high / low for _, low, high in found]) < 8
    assert not any(map(math.isfinite, times_as_steep(windows, "cpu", 0.97)))


@pytest.mark.promise
def test_a_bend_at_an_end_of_the_shares_is_no_knee() -> None:
    random = np.random.default_rng(7)
    cpu = cpu_shares(random, "ramps")
    windows = windows_of(random, cpu, cpu, heavy=False)
    windows["p50_ms"] = (20 * cpu**1.1 * np.exp(0.02 * random.normal(size=cpu.shape))).ravel()
    fit = knee(windows, "cpu")
    assert not fit.supported
    assert fit.words().startswith("no knee: the nearest bend is at the first place tried, 1")


@pytest.mark.parametrize("design", DESIGNS)
def test_the_bend_of_a_queue_s_latency_is_no_threshold(design: str) -> None:
    random = np.random.default_rng(4)
    fits = []
    for _ in range(RUNS):
        cpu = cpu_shares(random, design)
        fits.append(knee(windows_of(random, cpu, latency_of("queue", cpu), heavy=False), "cpu"))
    smooth = [fit for fit in fits if fit.smooth]
    assert len(smooth) >= 0.85 * RUNS
    assert all(math.isnan(fit.step) for fit in fits)
    assert "but a smooth curve fits as well" in smooth[0].words()


@pytest.mark.promise
@pytest.mark.parametrize("design", DESIGNS)
def test_a_planted_step_is_told_as_a_step_with_its_place(design: str) -> None:
    random = np.random.default_rng(6)
    fits = []
    for _ in range(RUNS):
        cpu = cpu_shares(random, design)
        fits.append(knee(windows_of(random, cpu, latency_of("step", cpu), heavy=False), "cpu"))
    steps = [fit for fit in fits if not math.isnan(fit.step)]
    # Smooth curves follow a few steps as well, as the noise has it.
    assert len(steps) >= RUNS - 2
    assert sum(fit.low <= KNEE <= fit.high for fit in steps) >= LEAST_COVERED - 1
    assert np.mean([fit.step for fit in steps]) == pytest.approx(2, rel=0.15)
    assert steps[0].words().startswith("latency steps to ")


def test_the_words_of_a_knee_have_its_place_and_interval() -> None:
    random = np.random.default_rng(5)
    cpu = cpu_shares(random, "ramps")
    fit = knee(windows_of(random, cpu, latency_of("bent", cpu), heavy=False), "cpu")
    words = f"[{100 * fit.low:.0f}, {100 * fit.high:.0f}] CPU: latency rises from there on"
    assert fit.words() == f"the nearest broken line bends at {100 * fit.cpu:.0f}% {words}"
    assert fit.unit == "12 trials"
    assert fit.after - fit.before == pytest.approx(30, rel=0.15)
    usual_ms = latency_of("in proportion, bent", cpu)
    faster = knee(windows_of(random, cpu, usual_ms, heavy=False), "cpu")
    told = f": latency rises {faster.after / faster.before:.2f} times as fast from there on"
    assert faster.words().endswith(told)
    few = knee(windows_of(random, cpu[:7], latency_of("bent", cpu[:7]), heavy=False), "cpu")
    assert few.words() == "too few trials for a knee: 7 of 8"
