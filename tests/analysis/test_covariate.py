"""The CPU's speed as a covariate: only from before the load, and only if it cuts the variance."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from perflab.analysis.covariate import Adjustment, adjustment, priced
from perflab.analysis.evaluation import evaluate
from perflab.recordings import Run
from perflab.statistics.comparison import mean_interval
from tests.support.simulations.covariates import AFTER, MEAN, Case, simulated
from tests.support.synthetic import contrast_of, variants, write_run

SETS = 600


@pytest.mark.parametrize(
    "case",
    [
        Case(3, 6, 0.7, slowed=0.1),
        Case(2, 11, 0.7, slowed=0.1),
        Case(3, 8, 0.0, slowed=0.1),
        Case(3, 8, 0.7, slowed=0.1, tails=True),
    ],
    ids=str,
)
def test_a_corrected_comparison_keeps_its_level_whatever_a_treatment_does_to_the_machine(
    case: Case,
) -> None:
    result = simulated(case, SETS)
    # At n = 6 the signed-rank interval itself is at 97%.
    assert 0.015 <= result.level <= 0.075
    assert result.coverage >= 0.925
    if case.follows >= 0.7:
        assert result.used > 0.6
        assert result.width < 0.8


@pytest.mark.parametrize("probe", [MEAN, AFTER])
def test_a_probe_after_the_load_would_call_equal_treatments_different(probe: str) -> None:
    assert simulated(Case(3, 8, 0.9, slowed=0.1), 150, covariate=probe).level > 0.2


def test_two_treatments_have_enough_from_eleven_blocks_and_three_from_six() -> None:
    assert simulated(Case(2, 10, 0.95), 30).used == 0
    assert simulated(Case(2, 11, 0.95), 30).used == 1
    assert simulated(Case(3, 5, 0.95), 30).used == 0
    assert simulated(Case(3, 6, 0.95), 30).used == 1


def test_the_interval_with_a_fitted_slope_is_that_of_least_squares() -> None:
    random = np.random.default_rng(3)
    c = 0.1 * random.normal(size=5) + 0.05
    d = 0.2 - 0.8 * c + 0.05 * random.normal(size=5)
    slope = stats.linregress(c, d)
    # The slope's sum of squares for two treatments is half that of the differences.
    fit = Adjustment("x", slope.slope, 0.5, float(((c - c.mean()) ** 2).sum()) / 2, 3)
    interval = mean_interval(priced(d, c, fit, weight=2.0))
    margin = float(stats.t.ppf(0.975, 3) * slope.intercept_stderr)
    assert (interval.estimate, interval.high - interval.low) == pytest.approx(
        (slope.intercept, 2 * margin)
    )


def test_a_finding_is_corrected_for_the_probe_before_the_load_alone(tmp_path) -> None:
    planted = variants(3, step=1.0)
    run = write_run(
        tmp_path, treatments=planted, blocks=8, requests=30, noise=0.01,
        contrasts=[contrast_of(planted[1], planted[0])],
    )  # fmt: skip
    trials = run.trials()
    speed = np.exp(0.1 * np.random.default_rng(5).normal(size=len(trials)))
    hot = np.where(trials["treatment"] == planted[1].name, 1.3, 1.0)
    follows = trials.assign(throughput_rps=trials["throughput_rps"] / speed)
    run._trials = follows.assign(
        cpu_probe_before_ms=5.0 * speed, cpu_probe_after_ms=5.0 * speed * hot
    )
    (finding,) = evaluate(run)
    assert finding.effect is not None
    assert any(text.startswith("adjusted for cpu_probe_before_ms") for text in finding.warnings)
    assert finding.effect.low < 1 < finding.effect.high
    assert finding.effect.high / finding.effect.low < 1.1
    # A run that recorded only the mean of both probes is not corrected.
    again = Run(run.path)
    again._trials = follows.assign(cpu_probe_ms=5.0 * speed, cpu_probe_before_ms=math.nan)
    (plain,) = evaluate(again)
    assert not any(text.startswith("adjusted") for text in plain.warnings)


def speed_runs(random: np.random.Generator, slope: float) -> pd.DataFrame:
    """Return trials of three treatments whose response follows the CPU's speed with a slope."""
    keys = pd.MultiIndex.from_product([range(12), ["a", "b", "c"]], names=["block", "treatment"])
    probe, noise = np.exp(random.normal(0, [[0.1], [0.02]], (2, len(keys))))
    response = probe**slope * noise
    return pd.DataFrame({"response": response, "cpu_probe_ms": probe}, keys).reset_index()


def test_the_speed_of_the_cpu_is_used_only_where_it_cuts_the_variance() -> None:
    random = np.random.default_rng(7)
    for slope, least, most in ((0.0, 0, 2), (-1.0, 29, 30)):
        runs = [speed_runs(random, slope) for _ in range(30)]
        used = sum(adjustment(trials, "response", "cpu_probe_ms").used for trials in runs)
        assert least <= used <= most


def drifting(trials: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Let response and probe drift together from block to block; in a block the probe is noise."""
    drift = np.exp(np.cumsum(0.1 * random.standard_normal(12)))[trials["block"]]
    return trials.assign(
        response=trials["response"] / drift, cpu_probe_ms=trials["cpu_probe_ms"] * drift
    )


def test_a_drift_that_pairing_removes_is_no_ground_for_an_adjustment() -> None:
    random = np.random.default_rng(9)
    runs = [drifting(speed_runs(random, 0.0), random) for _ in range(60)]
    assert sum(adjustment(trials, "response", "cpu_probe_ms").used for trials in runs) <= 2
    # The slope within blocks is still used.
    runs = [drifting(speed_runs(random, -0.5), random) for _ in range(30)]
    slopes = [adjustment(trials, "response", "cpu_probe_ms").slope for trials in runs]
    assert np.median(slopes) == pytest.approx(-0.5, abs=0.03)
