"""Loads that end early, start at one instant or have no length, and how they are judged."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.load.checks.failure_reasons import on_kept_connections
from perflab.load.checks.failures import causes, in_words
from perflab.load.checks.machine_counts import MachineCounts
from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.clients.outcome import CODES
from perflab.load.records.loop_probe import CPU, CPU_FILE
from perflab.load.records.record import merged
from perflab.load.records.result import LoadResult
from perflab.load.workload import Burst, ClosedLoop, Connections, OpenLoop, Request, Stage, Workload
from perflab.recordings.responses import CLIENT_LATE
from tests.load.planted import BEGIN_NS, S, load_result, scripted


def judged(folder: Path, arrivals: Any, requests: int, **facts: Any) -> SelfCheck:
    work = Workload(request=Request(), arrivals=arrivals)
    done_s = np.linspace(0.4, 0.4 + requests / 100, requests)
    return check(load_result(folder, done_s, **facts), work)


OPEN = OpenLoop(stages=(Stage(rate=100, duration_s=5),))
# Paced users: Little's law is not checked for them.
BY_COUNT = ClosedLoop(users=5, requests=500, pacing_s=0.1)
BY_TIME = ClosedLoop(users=5, duration_s=4, warmup_s=1, pacing_s=0.1)


@pytest.mark.parametrize("arrivals", [OPEN, BY_COUNT, Burst(size=500)])
@pytest.mark.promise
def test_a_load_of_known_size_is_refused_when_requests_are_missing(
    tmp_path: Path, arrivals: Any
) -> None:
    judgement = judged(tmp_path / "lost", arrivals, 9)
    assert any(
        "500 requests were planned, but 9 were recorded" in reason for reason in judgement.reasons
    )
    judgement = judged(tmp_path / "unsent", arrivals, 9, unsent=491)
    assert any("491 planned requests were never sent" in reason for reason in judgement.reasons)
    whole = judged(tmp_path / "whole", arrivals, 500)
    assert (whole.reasons, whole.warnings) == ((), ())


@pytest.mark.parametrize("arrivals", [BY_TIME, scripted(duration_s=4, warmup_s=1).arrivals])
@pytest.mark.promise
def test_a_load_of_known_length_is_refused_when_it_ends_early(
    tmp_path: Path, arrivals: Any
) -> None:
    (reason,) = judged(tmp_path / "early", arrivals, 400, lasted_s=3.0).reasons
    assert reason.text == "the load ended after 3 s, but 5 s were planned"
    assert judged(tmp_path / "whole", arrivals, 400, lasted_s=4.951).valid
    failed = judged(tmp_path / "failed", arrivals, 400, lasted_s=3.0, errors={"closed": 50})
    assert {reason.side for reason in failed.reasons} == {"server"}
    assert judged(tmp_path / "stopped", arrivals, 400, lasted_s=3.0, stopped="interrupted").valid


def test_a_load_that_reached_its_number_of_requests_may_be_over_before_its_time(
    tmp_path: Path,
) -> None:
    both = ClosedLoop(users=5, requests=400, duration_s=60, pacing_s=0.1)
    assert judged(tmp_path / "enough", both, 400, lasted_s=3.0).valid
    assert not judged(tmp_path / "short", both, 399, lasted_s=3.0).valid


def test_requests_without_a_connection_are_the_servers_fault_and_unstarted_ones_the_clients(
    tmp_path: Path,
) -> None:
    waited = judged(tmp_path / "a", OPEN, 500, errors={"unsent": 200})
    (reason,) = waited.reasons
    assert reason.side == "server"
    assert (
        "200 planned requests were never sent: the load reached 60.1/s of the planned 100/s"
        in reason
    )
    late = judged(tmp_path / "b", OPEN, 300, unsent=200)
    assert [reason.side for reason in late.reasons] == ["client"]


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
    [(30, 6.0, False), (30, 90.0, False), (1.0, 95.0, False), (1.0, 105.0, True), (0.1, 12, True)],
)
def test_starting_a_burst_may_take_a_tenth_of_the_response_time(
    tmp_path: Path, seconds: float, lag_ms: float, refused: bool
) -> None:
    result = downloads(tmp_path, seconds, lag_ms)
    assert (CLIENT_LATE in reason_codes(result, burst())) == refused


def test_a_load_in_which_every_request_times_out_is_refused_unless_time_outs_are_expected(
    tmp_path: Path,
) -> None:
    result = downloads(tmp_path, 300.0, timed_out=USERS)
    assert "server.failures" in reason_codes(result, burst())
    study = burst(may_time_out=True)
    assert reason_codes(result, study) == set()
    assert in_words(causes(result)).startswith("100 x timeout")


@pytest.mark.promise
def test_the_time_in_which_a_service_hangs_for_good_is_in_the_throughput_of_its_users(
    tmp_path: Path,
) -> None:
    """It answers for 5 of 10 s, and then no more: all users wait until their time-out."""
    done_s = np.append(np.arange(0.01, 5.0, 0.01), 35.0)

    def hang(rows: np.ndarray) -> None:
        rows["planned_ns"][-1] = rows["started_ns"][-1] = rows["sent_ns"][-1] = BEGIN_NS + 5 * S
        rows["error"][-1] = CODES["timeout"]

    until_ns = BEGIN_NS + 10 * S
    hung = load_result(
        tmp_path, done_s, latency_s=0.01, change=hang, lasts_until_ns=until_ns, timeout_s=30.0
    )
    assert hung.throughput_rps == pytest.approx(50, rel=0.02)
    served = load_result(tmp_path / "served", done_s[:-1], latency_s=0.01, lasts_until_ns=until_ns)
    assert served.throughput_rps == pytest.approx(100, rel=0.02)


def test_a_burst_lasts_until_its_last_end(tmp_path: Path) -> None:
    result = downloads(tmp_path, 20.0)
    assert result.at_once
    assert result.window == (result.begin_ns, result.end_ns) == (BEGIN_NS, BEGIN_NS + 20 * S)
    assert check(result, burst()).client_cpu_share == pytest.approx(1 / 20)


WORK = Workload(request=Request(), arrivals=ClosedLoop(users=1, requests=2))


def report(folder: Path) -> dict[str, Any]:
    """Return the report of a worker that used 5 ms of CPU a second, and 2 before its load."""
    noted_ns = [BEGIN_NS - 5 * S, BEGIN_NS, BEGIN_NS + 10 * S]
    notes = zip(noted_ns, [0, 2 * S, 2 * S + S // 20], [0, S, S], strict=True)
    (folder / CPU_FILE).write_bytes(np.array([*notes], dtype=CPU).tobytes())
    return {
        "unsent": 0, "lasted_ns": S,
        "capped": 0, "resent": 0, "stopped": "",
        "clock_step_ms": 0.0, "real_time": True, "first_errors": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("done_s", "share"),
    [([], 0.0), ([1.0], 0.005), ([1.0, 1.0], 0.005), ([1.0, 2.0], 0.005)],
)
def test_the_cpu_share_of_a_load_is_one_of_time(
    tmp_path: Path, done_s: list[float], share: float
) -> None:
    load_result(tmp_path, np.array(done_s))
    result = merged(tmp_path, [report(tmp_path / "0")], WORK, MachineCounts.now((0,)), start_ns=0)
    judged = check(result, WORK)
    assert judged.client_cpu_share == pytest.approx(share)
    assert judged.run_delay_share == 0
    assert "generator.cpu" not in {reason.code for reason in judged.reasons}


@pytest.mark.parametrize(
    ("changed", "words", "told"),
    [
        ({}, {}, True),
        ({"connect_ns": 1}, {}, False),  # the connections were new
        ({"first_byte_ns": 1}, {}, False),  # an answer had begun
        ({"sent_ns": 2 * S}, {}, False),  # others had been idle for longer and served
        ({}, {"connections": 5}, False),
        ({}, {"client": "aiohttp"}, False),
    ],
)
def test_failures_on_connections_that_the_server_was_closing_tell_its_time_out(
    tmp_path: Path, changed: dict[str, int], words: dict[str, Any], told: bool
) -> None:
    failing = [25, 37, 38]

    def planted(rows: np.ndarray) -> None:
        rows["user"] = np.arange(100) % 10
        rows["error"][failing], rows["first_byte_ns"][failing] = CODES["closed"], 0
        for name, value in changed.items():
            rows[name][slice(60, 70) if name == "sent_ns" else failing] += value

    # Each of ten users waits for 2 s before a request that takes 0.1 s.
    done_s = 2.1 * (1 + np.arange(100) // 10)
    result = load_result(tmp_path, done_s, latency_s=0.1, change=planted)
    loop = ClosedLoop(users=10, requests=100, think_time_s=2)
    workload = Workload.model_validate({"request": {}, "arrivals": loop, **words})
    remarks = on_kept_connections(result, workload)
    assert [remark.text[:50] for remark in remarks] == (
        ["3 failures met a kept connection that the server w"] if told else []
    )
    assert all("time-out seems to be 2.0 s" in remark.text for remark in remarks)


AT_A_RATE = Workload(request=Request(), arrivals=OpenLoop(stages=(Stage(rate=10, duration_s=10),)))


@pytest.mark.parametrize("fresh", [0, 1])
def test_failures_on_shared_connections_that_had_served_before_are_told(
    tmp_path: Path, fresh: int
) -> None:
    failing = [25, 37, 38]

    def planted(rows: np.ndarray) -> None:
        rows["error"][failing], rows["first_byte_ns"][failing] = CODES["closed"], 0
        rows["connect_ns"][failing[:fresh]] = 1

    result = load_result(tmp_path, np.arange(1, 101) / 10, latency_s=0.1, change=planted)
    remarks = on_kept_connections(result, AT_A_RATE)
    assert [remark.text[:58] for remark in remarks] == (
        ["3 failures met a connection that had served before and was"] * (not fresh)
    )


@pytest.mark.promise
@pytest.mark.parametrize(("most", "told"), [(0, True), (5, False)])
def test_few_files_are_told_only_where_they_are_fewer_than_the_cap_on_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int, told: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (128, 128))
    result = load_result(tmp_path, np.arange(1, 101) / 10, capped=9)
    work = AT_A_RATE.model_copy(update={"connections": Connections(most=most)})
    (text,) = (one.text for one in check(result, work).warnings if one.code == "load.capped")
    assert ("a process may open 128 files only" in text) == told


@pytest.mark.promise
def test_requests_that_few_files_kept_back_are_no_fault_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def planted(rows: np.ndarray) -> None:
        rows["error"][50:], rows["sent_ns"][50:] = CODES["unsent"], 0

    result = load_result(tmp_path, np.arange(1, 101) / 10, change=planted)
    for limit, side in ((1 << 20, "server"), (128, "client")):
        limits = (limit, limit)
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        (reason,) = [
            item for item in check(result, AT_A_RATE).reasons if item.code == "load.unsent"
        ]
        assert reason.side == side
        assert ("a process may open 128 files only: raise the limit" in reason.text) == (
            limit < 999
        )
