"""Loads in which every user starts one request at the same instant, and how they are judged."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.instruments.requests import request_columns
from perflab.load.checks.failure_causes import causes, in_words
from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workload import Arrivals, Burst, ClosedLoop, Request, Scripted, Workload
from tests.load.hostile import Hostile, Part, Script, beside
from tests.load.planted import BEGIN_NS, S, load_result
from tests.load.processes import a_worker

USERS = 100
SCRIPT = """
from perflab.load.users import User, action

class Once(User):
    @action
    async def download(self):
        await self.get("/", expect_bytes=100_000, progress_points=4, keep_body=False)
"""
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000)


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


def test_times_of_timed_out_requests_are_bounds(tmp_path: Path) -> None:
    row = request_columns(downloads(tmp_path, 300.0, timed_out=USERS))
    for name in ("mean", "p50", "max"):
        assert math.isnan(row[f"{name}_ms"])
        assert row[f"{name}_at_least_ms"] == pytest.approx(300_000)
    assert row["throughput_rps"] == 0
    # Half of the requests took less than the time-out; the others have only a lower bound.
    row = request_columns(downloads(tmp_path / "half", 300.0, timed_out=3))
    assert row["p50_ms"] == pytest.approx(300_000)
    assert "p50_at_least_ms" not in row
    assert math.isnan(row["mean_ms"])


def test_a_burst_lasts_until_its_last_end(tmp_path: Path) -> None:
    result = downloads(tmp_path, 20.0)
    assert result.at_once
    assert result.window == (result.begin_ns, result.end_ns) == (BEGIN_NS, BEGIN_NS + 20 * S)
    assert check(result, burst()).cpu_share == pytest.approx(1 / 20)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("script") / "bursts.py"
    path.write_text(SCRIPT)
    return str(path)


def loaded(work: Workload, answers: Script) -> LoadResult:
    with beside(Hostile([answers])) as url, a_worker() as generator:
        return generator.run(work, url)


SLOW = Script((Part(ANSWER), Part(bytes(50_000), 0.6)), end="keep")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["burst", "closed", "scripted"])
def test_every_kind_of_load_can_start_everyone_at_once(kind: str, script: str) -> None:
    users = 30
    arrivals: dict[str, Arrivals] = {
        "burst": Burst(size=users),
        "closed": ClosedLoop(users=users, requests=users),
        "scripted": Scripted(script=f"{script}:Once", users=users, duration_s=2.0, actions=1),
    }
    request = Request(expect_bytes=100_000)
    result = loaded(Workload(request=request, arrivals=arrivals[kind]), SLOW)
    table = result.requests
    assert list(table["error"]) == [""] * users
    assert list(table["stage"]) == ["measure"] * users
    assert table["planned_ns"].nunique() == 1
    assert table["user"].nunique() == users
    # All requests were under way before the first answer: the server waits 0.6 s for each.
    assert table["sent_ns"].max() < table["done_ns"].min()
    assert result.at_once
    # The client's CPU covers the downloads, and not their start alone.
    assert result.cpu_ns > 0
    result.discard()
