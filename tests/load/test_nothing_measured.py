"""A load without time between measured starts has no share of CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.load.checks.selfcheck import check
from perflab.load.checks.trend import MachineCounts
from perflab.load.records.record import merged
from perflab.load.workload import ClosedLoop, Request, Workload
from tests.load.planted import BEGIN_NS, S, load_result

WORK = Workload(request=Request(), arrivals=ClosedLoop(users=1, requests=2))


def report() -> dict[str, Any]:
    """Return the report of a worker that used 5 ms of CPU."""
    return {
        "cpu_ns": S // 200, "wall_ns": S, "run_delay_ns": 0, "began_ns": BEGIN_NS, "unsent": 0,
        "looks": {"woken_us": [], "late_ms": [], "began_ns": BEGIN_NS}, "lasted_ns": S,
        "capped": 0, "stopped": "",
        "clock_step_ms": 0.0, "real_time": True, "first_errors": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("done_s", "share"),
    [([], 0.0), ([1.0], 0.005 / 0.3), ([1.0, 1.0], 0.005 / 0.3), ([1.0, 2.0], 0.005)],
)
def test_the_cpu_share_of_a_load_is_one_of_time(
    tmp_path: Path, done_s: list[float], share: float
) -> None:
    load_result(tmp_path, np.array(done_s))
    result = merged(tmp_path, [report()], WORK, MachineCounts.now((0,)), start_ns=0)
    judged = check(result, WORK)
    assert judged.cpu_share == pytest.approx(share)
    assert "generator.cpu" not in {reason.code for reason in judged.reasons}
