"""Windows are cut right, and correlations take the trial for the unit."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.statistics.correlation import correlate, windows

MS = 1_000_000


def requests_at(done_ms, response_ms) -> pd.DataFrame:
    done = np.asarray(done_ms, dtype=np.int64) * MS
    return pd.DataFrame(
        {
            "trial_id": "t",
            "treatment": "x",
            "block": 0,
            "error": "",
            "done_ns": done,
            "planned_ns": done - np.asarray(response_ms, dtype=np.int64) * MS,
        }
    )


def test_windows_by_hand() -> None:
    requests = requests_at([10, 50, 150, 320], [10, 20, 30, 5])
    samples = pd.DataFrame(
        {
            "trial_id": "t",
            "service": "s",
            "t_ns": np.array([0, 100, 300]) * MS,
            "cpu_ns": np.array([0, 50, 250]) * MS,
        }
    )
    table = windows(requests, samples, ["s", "absent"], 0.1)
    assert list(table["p50_ms"])[:2] == [15, 30]
    assert math.isnan(table["p50_ms"].iloc[2])
    assert list(table["cpu_s"]) == pytest.approx([0.5, 1.0, 1.0])
    assert table["cpu_absent"].isna().all()


def test_failed_requests_are_in_no_window() -> None:
    requests = requests_at([10, 50, 120], [10, 20, 30]).assign(error=["", "timeout", ""])
    table = windows(requests, pd.DataFrame(columns=["trial_id", "service"]), [], 0.1)
    assert list(table["p50_ms"]) == [10]


def planted(trials: int, count: int, slope: float, shift: float = 0.0):
    random = np.random.default_rng(1)
    frames = []
    for number in range(trials):
        x = random.normal(size=count) + shift * number
        y = slope * (x - shift * number) + random.normal(size=count) + shift * number
        frames.append(pd.DataFrame({"trial_id": f"t{number}", "x": x, "y": y}))
    return pd.concat(frames, ignore_index=True)


def test_a_planted_correlation_is_found_with_the_trials_as_n() -> None:
    correlation = correlate(planted(8, 60, slope=1.0), "x", "y")
    assert correlation.n == 8
    assert correlation.windows == 480
    # Spearman's rho of a bivariate normal with Pearson's r of 1/sqrt(2).
    assert correlation.low < 6 / math.pi * math.asin(math.sqrt(0.5) / 2) < correlation.high


def test_a_difference_between_trials_is_no_correlation() -> None:
    table = planted(8, 60, slope=0.0, shift=10.0)
    assert abs(np.corrcoef(table["x"], table["y"])[0, 1]) > 0.9
    correlation = correlate(table, "x", "y")
    assert abs(correlation.rho) < 0.2


def test_autocorrelated_windows_give_no_false_correlation() -> None:
    random = np.random.default_rng(5)
    false, runs = 0, 100
    for _ in range(runs):
        steps = random.normal(size=(2, 8, 30))
        walk = np.zeros_like(steps)
        for t in range(1, 30):
            walk[..., t] = 0.9 * walk[..., t - 1] + steps[..., t]
        table = pd.DataFrame(
            {"trial_id": np.repeat(np.arange(8), 30), "x": walk[0].ravel(), "y": walk[1].ravel()}
        )
        correlation = correlate(table, "x", "y")
        false += not correlation.low <= 0 <= correlation.high
    assert false / runs <= 0.09


@pytest.mark.promise
def test_a_drift_that_both_columns_share_is_a_correlation_only_with_its_trend() -> None:
    random = np.random.default_rng(6)
    with_it = without = 0
    for _ in range(50):
        drift = np.linspace(0, 3, 40) + 0.3 * np.sin(np.linspace(0, 2, 40))
        frames = [
            pd.DataFrame({
                "trial_id": f"t{number}",
                "x": drift + random.normal(size=40), "y": drift + random.normal(size=40),
            })
            for number in range(8)
        ]  # fmt: skip
        correlation = correlate(pd.concat(frames, ignore_index=True), "x", "y")
        with_it += correlation.low > 0
        _, low, high = correlation.apart
        without += not low <= 0 <= high
    assert with_it >= 45
    assert without <= 7  # 5%, and three of its standard deviations
    # What they have in common beside it stays.
    assert correlate(planted(8, 60, slope=1.0), "x", "y").apart[1] > 0.4


def test_constant_and_short_trials_are_left_out() -> None:
    table = planted(3, 20, 1.0)
    table.loc[table["trial_id"] == "t0", "x"] = 1.0
    table = table[(table["trial_id"] != "t1") | (table.index % 20 < 3)]
    correlation = correlate(table, "x", "y")
    assert correlation.n == 1
    assert math.isnan(correlation.low)
