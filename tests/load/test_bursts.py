"""Loads in which every user starts one request at the same instant, and how they are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.load.checks.failures import causes, in_words
from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workload import Burst, Request, Workload
from tests.load.planted import BEGIN_NS, S, load_result

USERS = 100


def burst(**more: Any) -> Workload:
    return Workload(request=Request(), arrivals=Burst(size=USERS), **more)


def downloads(folder: Path, seconds: float, lag_ms: float = 0.0, timed_out: int = 0) -> LoadResult:
    """Return a burst of downloads that started late one after the other; some timed out."""

    def at_one_instant(rows: np.ndarray) -> None:
        rows["planned_ns"] = BEGIN_NS
        rows["started_ns"] = BEGIN_NS + (np.linspace(0, 2 * lag_ms, USERS) * 1e6).astype("int64")
        rows["sent_ns"] = rows["started_ns"]

    return load_result(
        folder, np.full(USERS, seconds), errors={"timeout": timed_out}, change=at_one_instant
    )


def reason_codes(result: LoadResult, work: Workload) -> set[str]:
    return {reason.code for reason in check(result, work).reasons}


@pytest.mark.parametrize(
    ("seconds", "lag_ms", "refused"),
    [(30, 6.0, False), (30, 90.0, False), (1.0, 45.0, False), (1.0, 60.0, True), (0.1, 12, True)],
)
def test_starting_a_burst_may_take_a_tenth_of_the_response_time(
    tmp_path: Path, seconds: float, lag_ms: float, refused: bool
) -> None:
    result = downloads(tmp_path, seconds, lag_ms)
    assert ("generator.lag" in reason_codes(result, burst())) == refused


def test_a_load_in_which_every_request_times_out_is_refused_unless_time_outs_are_expected(
    tmp_path: Path,
) -> None:
    result = downloads(tmp_path, 300.0, timed_out=USERS)
    assert "server.failures" in reason_codes(result, burst())
    study = burst(may_time_out=True)
    assert reason_codes(result, study) == set()
    assert in_words(causes(result)).startswith("100 x timeout")


def test_a_burst_lasts_until_its_last_end(tmp_path: Path) -> None:
    result = downloads(tmp_path, 20.0)
    assert result.at_once
    assert result.window == (result.begin_ns, result.end_ns) == (BEGIN_NS, BEGIN_NS + 20 * S)
    assert check(result, burst()).cpu_share == pytest.approx(1 / 20)
