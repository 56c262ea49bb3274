"""Planted knees are found and covered; straight lines and noise have none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from perflab.statistics.knees import knee

RUNS = 24
PLACE = 0.55
# At 95% coverage, fewer than 20 of 24 runs have a probability below 1%, as have more than 4 false
# knees at 5%. benchmarks/coverage.py has 1,000 runs.
LEAST_COVERED = 20
MOST_FALSE = 4


def ar1(random, trials: int, count: int, rho: float, heavy: bool = False) -> np.ndarray:
    size = (trials, count + 30)
    steps = random.standard_t(3, size) if heavy else random.normal(size=size)
    return lfilter([1], [1, -rho], steps * math.sqrt(1 - rho**2), axis=1)[:, 30:]


def loads(random, design: str) -> np.ndarray:
    """Return CPU shares, shape (trials, windows)."""
    if design == "ramps":
        return np.clip(np.linspace(0.15, 0.85, 60) + 0.05 * ar1(random, 12, 60, 0.5), 0.02, 0.98)
    if design == "one load per trial":
        level = np.tile(np.linspace(0.15, 0.85, 6), 4)[:, None]
        return np.clip(level + 0.05 * ar1(random, 24, 40, 0.5), 0.02, 0.98)
    wave = 0.5 + 0.35 * np.sin(np.linspace(0, 6 * math.pi, 150))
    return np.clip(wave + 0.05 * ar1(random, 4, 150, 0.5), 0.02, 0.98)


def windows_of(random, cpu: np.ndarray, logs: np.ndarray, heavy: bool = False) -> pd.DataFrame:
    """Return windows with AR(1) noise of 20% and levels of trials that differ by 8%."""
    trials, count = cpu.shape
    noise = 0.2 * ar1(random, trials, count, 0.6, heavy) + 0.08 * random.normal(size=(trials, 1))
    return pd.DataFrame(
        {
            "trial_id": np.repeat([f"t{trial:02}" for trial in range(trials)], count),
            "cpu": cpu.ravel(),
            "p50_ms": np.exp(1.6 + logs + noise).ravel(),
        }
    )


def bent(cpu: np.ndarray) -> np.ndarray:
    return 0.3 * cpu + 4 * np.maximum(0, cpu - PLACE)


DESIGNS = ["ramps", "one load per trial", "few trials"]


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_planted_knee_is_found_and_its_interval_covers_it(design: str, heavy: bool) -> None:
    random = np.random.default_rng(1)
    fits = []
    for _ in range(RUNS):
        cpu = loads(random, design)
        fits.append(knee(windows_of(random, cpu, bent(cpu), heavy), "cpu"))
    assert all(fit.supported for fit in fits)
    assert sum(fit.low <= PLACE <= fit.high for fit in fits) >= LEAST_COVERED
    assert np.median([fit.high - fit.low for fit in fits]) < 0.15
    assert abs(np.mean([fit.cpu for fit in fits]) - PLACE) < 0.02


@pytest.mark.parametrize(
    ("design", "slope"), [("ramps", 0.0), *((design, 2.0) for design in DESIGNS)]
)
def test_a_straight_line_rarely_has_a_knee(design: str, slope: float) -> None:
    random = np.random.default_rng(2)
    fits = []
    for _ in range(RUNS):
        cpu = loads(random, design)
        fits.append(knee(windows_of(random, cpu, slope * cpu), "cpu"))
    assert sum(fit.supported for fit in fits) <= MOST_FALSE
    straight = next(fit for fit in fits if not fit.supported)
    assert "no upward bend can be shown" in straight.words()
    assert math.isnan(straight.cpu)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("power", [1, 2])
def test_the_bend_of_a_queue_s_latency_is_no_threshold(design: str, power: int) -> None:
    random = np.random.default_rng(4)
    fits = []
    for _ in range(RUNS):
        cpu = loads(random, design)
        logs = -np.log(1 - np.minimum(cpu / 1.05, 0.99) ** power)
        fits.append(knee(windows_of(random, cpu, logs), "cpu"))
    assert sum(fit.smooth for fit in fits) >= 0.75 * RUNS


def test_a_smooth_curve_is_no_threshold_and_differs_from_a_bend() -> None:
    random = np.random.default_rng(11)
    smooth, sharp = [], []
    for _ in range(6):
        cpu = loads(random, "ramps")
        smooth.append(knee(windows_of(random, cpu, 3 * cpu**2), "cpu"))
        sharp.append(knee(windows_of(random, cpu, bent(cpu)), "cpu"))
    bends = [fit for fit in smooth if fit.supported]
    assert len(bends) >= 3
    assert sum(fit.smooth for fit in bends) >= 0.9 * len(bends)
    assert "but a smooth curve" in bends[0].words()
    assert "nearest broken line" in bends[0].words()
    assert sum(fit.smooth for fit in sharp) <= 1


def test_the_words_of_a_knee_have_its_place_and_interval() -> None:
    random = np.random.default_rng(5)
    cpu = loads(random, "ramps")
    fit = knee(windows_of(random, cpu, bent(cpu)), "cpu")
    words = f"[{100 * fit.low:.0f}, {100 * fit.high:.0f}] CPU: latency rises from there on"
    assert fit.words() == f"the nearest broken line bends at {100 * fit.cpu:.0f}% {words}"
    assert fit.unit == "12 trials"
    assert fit.after - fit.before == pytest.approx(4, rel=0.15)
