"""The burst model: it agrees with a queue, and leaves out rungs that it does not hold for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from perflab.recordings import Run
from perflab.systems.chat.bursts import (
    BURSTS,
    Beat,
    beat,
    burst_model,
    computed_quantile,
)
from tests.figures.shown import cut_off, one_line, overlapping, picture
from tests.systems.chat.synthetic_streams import write_ladder

T_S, RATE, C_S = 6.0, 18_000.0, 50e-6


@pytest.mark.parametrize(
    ("behind_s", "spread", "instants", "most"), [(0.25, False, 24, 18), (0.35, False, 120, 4)]
)
def test_the_delay_between_joins_sets_the_number_of_instants(
    behind_s: float, spread: bool, instants: int, most: int
) -> None:
    acting = beat(425, behind_s, T_S, spread)
    assert (len(acting.at_s), acting.users.max(), acting.users.sum()) == (instants, most, 425)


def test_where_bursts_meet_the_model_is_a_queue_with_one_server() -> None:
    acting = Beat(np.array([0.0, 0.1, 0.15, 3.0]), np.array([5, 1, 9, 2]), T_S)
    deliveries = acting.users * 400
    free_s, waits_s = 0.0, []
    for period in range(5):
        waits_s = []
        for at_s, burst in zip(acting.at_s + period * T_S, deliveries, strict=True):
            for _ in range(burst):
                free_s = max(free_s, at_s) + 8e-4
                waits_s.append(free_s - at_s)
    quantile_s = computed_quantile(acting, deliveries.sum() / T_S, 8e-4)
    assert quantile_s == pytest.approx(np.quantile(waits_s, 0.9), rel=2e-3)
    assert quantile_s > 0.9 * deliveries.max() * 8e-4


def test_a_queue_that_grows_has_no_p90() -> None:
    assert math.isnan(computed_quantile(beat(240, 0.25, T_S), RATE, 1 / RATE))


def ladder(root: Path, factors: dict[str, float]) -> Run:
    """Write rungs whose measured p90 is the model's times a planted factor."""
    levels, planted = {}, {}
    for users, (name, factor) in zip((250, 300, 325, 425, 120), factors.items(), strict=False):
        spread = name == "spread"
        rate = 0.1 * users**2
        model_ms = 1000 * computed_quantile(beat(users, 0.25, T_S, spread), rate, 40e-6)
        delay = "spread" if spread else "together"
        levels[name, users] = {"beat_s": "0.25", "first_delay": delay}
        row = {"cpu_us_per_message": 40.0, "plateau_p90_ms": factor * model_ms}
        planted[name, users] = [row, row]
    return write_ladder(root, planted, levels, action_s=T_S)


def test_the_error_is_that_of_the_computed_value(tmp_path: Path) -> None:
    run = ladder(tmp_path, {"a": 1.25, "b": 1.0, "spread": 0.8, "c": 2.0})
    table = burst_model(run)
    assert list(table["error_percent"]) == pytest.approx([-20, 0, 25, -50])
    assert list(table["instants"]) == [24, 24, 325, 24]
    assert list(table["busy_percent"]) == pytest.approx([25, 36, 42.25, 72.25])
    figure = picture(BURSTS, run)
    assert "error of 4 computed values: 22% in the middle, 50% at most." in one_line(figure)
    assert cut_off(figure) == []
    assert overlapping(figure) == []


@pytest.mark.parametrize(
    ("delay", "reason"),
    [("together", "too busy for equal bursts"), ("action", "logins move users off the beat")],
)
def test_a_rung_that_the_model_does_not_hold_for_is_left_out_with_the_reason(
    tmp_path: Path, delay: str, reason: str
) -> None:
    row = {"cpu_us_per_message": 50.0, "plateau_p90_ms": 100.0}
    levels = {("a", 425): {"beat_s": "0.25", "first_delay": delay}}
    run = write_ladder(tmp_path, {("a", 425): [row]}, levels, action_s=T_S)
    (row_of_model,) = burst_model(run).to_dict("records")
    assert row_of_model["busy_percent"] == pytest.approx(90.3, abs=0.1)
    assert row_of_model["left_out"] == reason
    assert math.isnan(row_of_model["model_ms"])
