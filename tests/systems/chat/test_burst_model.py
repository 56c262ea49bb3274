"""The burst model: what it computes is what a queue does, and its error is of rungs left out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.paths import project_root
from perflab.recordings import Run
from perflab.systems.chat.analysis.bursts import (
    MOST_BUSY,
    Beat,
    beat,
    burst_model,
    computed_quantile,
)
from perflab.systems.chat.figures.delivery import BURSTS
from tests.figures.shown import cut_off, one_line, overlapping, picture
from tests.systems.chat.synthetic_streams import write_ladder

T_S, RATE, C_S = 6.0, 18_000.0, 50e-6


@pytest.mark.parametrize(
    ("behind_s", "spread", "instants", "most"),
    [(0.25, False, 24, 18), (0.35, False, 120, 4), (0.25, True, 425, 1)],
)
def test_users_have_as_many_instants_as_their_joins_leave_them(
    behind_s: float, spread: bool, instants: int, most: int
) -> None:
    when = beat(425, behind_s, T_S, spread)
    assert (len(when.at_s), when.users.max(), when.users.sum()) == (instants, most, 425)
    assert when.gaps_s.sum() == pytest.approx(T_S)


def test_without_overlap_the_p90_is_nine_tenths_of_a_burst() -> None:
    when = beat(240, 0.25, T_S)
    burst = RATE * T_S / 24
    assert computed_quantile(when, RATE, C_S) == pytest.approx(0.9 * burst * C_S)


def test_where_bursts_meet_the_model_is_a_queue_with_one_server() -> None:
    when = Beat(np.array([0.0, 0.1, 0.15, 3.0]), np.array([5, 1, 9, 2]), T_S)
    deliveries = when.users * 400
    free, waits = 0.0, []
    for period in range(5):
        waits = []
        for at_s, burst in zip(when.at_s + period * T_S, deliveries, strict=True):
            for _ in range(burst):
                free = max(free, at_s) + 8e-4
                waits.append(free - at_s)
    found = computed_quantile(when, deliveries.sum() / T_S, 8e-4)
    assert found == pytest.approx(np.quantile(waits, 0.9), rel=2e-3)
    assert found > 0.9 * deliveries.max() * 8e-4


def test_a_queue_that_grows_has_no_p90() -> None:
    assert math.isnan(computed_quantile(beat(240, 0.25, T_S), RATE, 1 / RATE))


def ladder(root: Path, factors: dict[str, float], first_delay: str = "together") -> Run:
    """Write rungs whose measured p90 is the model's times a planted factor."""
    levels, planted = {}, {}
    for users, (name, factor) in zip((250, 300, 325, 425, 120), factors.items(), strict=False):
        spread = name == "spread"
        rate = 0.1 * users**2
        model_ms = 1000 * computed_quantile(beat(users, 0.25, T_S, spread), rate, 40e-6)
        delay = "spread" if spread else first_delay
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


def test_a_rung_that_is_nearly_always_busy_is_kept_out_and_it_is_said(tmp_path: Path) -> None:
    row = {"cpu_us_per_message": 50.0, "plateau_p90_ms": 100.0}
    levels = {("a", 425): {"beat_s": "0.25", "first_delay": "together"}}
    (found,) = burst_model(
        write_ladder(tmp_path, {("a", 425): [row]}, levels, action_s=T_S)
    ).to_dict("records")
    assert found["busy_percent"] == pytest.approx(90.3, abs=0.1)
    assert found["left_out"] == "too busy for equal bursts"


def test_the_model_was_right_of_recorded_runs_where_they_were_not_too_busy() -> None:
    table = pd.read_csv(project_root() / "figures" / "readme" / "users_held.csv")
    calm = table[table["plateau_cpu_share_chat"] < MOST_BUSY]
    assert len(calm) == 7
    for row in calm.itertuples():
        cpu_s = row.plateau_cpu_share_chat / row.messages_per_s
        when = beat(row.users, 0.25, T_S)
        model_ms = 1000 * computed_quantile(when, row.messages_per_s, cpu_s)
        # Nothing is fitted: the CPU of a delivery was between 13 and 78 us.
        assert row.delivery_p90_ms / model_ms == pytest.approx(1.05, abs=0.07)


def test_logins_under_way_keep_a_rung_out_and_it_is_said(tmp_path: Path) -> None:
    table = burst_model(ladder(tmp_path, {"a": 1.0, "b": 1.0, "c": 1.0}, "action"))
    assert set(table["left_out"]) == {"logins move users off the beat"}
    assert table["model_ms"].isna().all()
