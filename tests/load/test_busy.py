"""The event loop is judged while the load is busy, not while users are joining."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.selfcheck import SelfCheck, check
from tests.load.planted import load_result, scripted

JOINING_S, ALL_S = 70.0, 100.0
LOGINS = np.linspace(0.5, JOINING_S - 0.5, 200)
DELIVERIES = np.linspace(JOINING_S, ALL_S - 0.1, 30_000)


def looks(busy_late_ms: float, idle_late_ms: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Return a look every 5 ms, with one lateness while users join and another after that."""
    woken_s = np.arange(0.005, ALL_S, 0.005)
    return woken_s, np.where(woken_s < JOINING_S, idle_late_ms, busy_late_ms)


def judged(folder: Path, delays: tuple[np.ndarray, np.ndarray]) -> SelfCheck:
    return check(load_result(folder, LOGINS, DELIVERIES, delays), scripted())


def test_a_late_loop_on_the_plateau_is_found_behind_a_quiet_minute_of_joining(
    tmp_path: Path,
) -> None:
    judgement = judged(tmp_path, looks(busy_late_ms=4.8))
    assert judgement.loop_delay_p50_ms == 4.8
    assert [reason.side for reason in judgement.reasons if "event-loop delay p50" in reason] == [
        "client"
    ]


def test_a_loop_that_is_late_only_while_nothing_is_measured_refuses_nothing(
    tmp_path: Path,
) -> None:
    judgement = judged(tmp_path, looks(busy_late_ms=0.05, idle_late_ms=4.8))
    assert judgement.loop_delay_p99_ms == pytest.approx(0.05)
    assert judgement.valid
