"""The generator against a server with known delays, and without free descriptors."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import TargetRefused
from perflab.load.checks.selfcheck import check
from perflab.load.clients.client import SPARE_FILES
from perflab.load.records.record import merged
from perflab.load.records.result import LoadResult
from perflab.load.workers import generator as generator_module
from perflab.load.workers.generator import Generator, Progress, StopLoad
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from tests.load.processes import a_worker, served


@pytest.fixture
def generator() -> Iterator[Generator]:
    with a_worker(real_time=True) as running:
        yield running


def workload(**arrivals: object) -> Workload:
    settings = {"users": 10, "requests": 200, "warmup_requests": 20, **arrivals}
    whole = {name: settings.pop(name) for name in ("connections", "timeout_s") if name in settings}
    request = Request(node="x", method="POST", body="{}", expect_body='"label":')
    arrivals_model = ClosedLoop.model_validate(settings)
    return Workload.model_validate({"request": request, "arrivals": arrivals_model, **whole})


@pytest.mark.parametrize("connection", ["per_request", "keep_alive"])
def test_every_request_is_recorded_with_its_instants_in_order(
    generator: Generator, connection: str
) -> None:
    with served("0.01") as port:
        result = generator.run(workload(connections=connection), f"http://127.0.0.1:{port}")
    stages = result.requests["stage"].value_counts()
    assert stages.to_dict() == {"measure": 200, "warmup": 20}
    good = result.requests
    assert (good["error"] == "").all()
    order = good[["planned_ns", "started_ns", "sent_ns", "first_byte_ns", "done_ns"]]
    assert order.diff(axis=1).iloc[:, 1:].min().min() >= 0
    service_ms = (good["done_ns"] - good["sent_ns"]) / 1e6
    assert service_ms.min() >= 10
    assert (good["phase_app_ms"] == 10).all()
    connected = (good["connect_ns"] > 0).sum()
    assert connected == (220 if connection == "per_request" else 10)
    assert (good["close_ns"] > 0).sum() == (220 if connection == "per_request" else 0)


@pytest.mark.promise
def test_the_report_of_a_longer_load_is_no_longer_and_all_of_its_ticks_are_known(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []

    def measured(folder: Path, reports: list[dict[str, Any]], *words: Any) -> LoadResult:
        lengths.append(len(json.dumps(reports)))
        return merged(folder, reports, *words)

    monkeypatch.setattr(generator_module, "merged", measured)
    with served("0.01") as port:
        for duration_s in (0.2, 1.2):
            work = workload(users=1, requests=0, warmup_requests=0, duration_s=duration_s)
            result = generator.run(work, f"http://127.0.0.1:{port}")
            _, late_ms = result.wakeups[0].ticks
            assert len(late_ms) >= duration_s * 200
            assert result.cpu_ns > 0
    assert max(lengths) < 1.2 * min(lengths)


@pytest.mark.promise
def test_fewer_connections_than_workers_are_not_exceeded() -> None:
    work = workload(users=8, connections=1)
    with served("0.01") as port, a_worker(workers=2) as two:
        result = two.run(work, f"http://127.0.0.1:{port}")
    assert len(result.requests) == 220
    assert result.connections_opened + (result.requests["connect_ns"] > 0).sum() <= 2
    assert (result.requests["connect_ns"] > 0).sum() == 1


def test_foreign_targets_are_refused_before_anything_is_sent(generator: Generator) -> None:
    with pytest.raises(TargetRefused, match=r"example\.org"):
        generator.run(workload(), "http://example.org")


@pytest.mark.alone
def test_an_open_load_ends_with_its_schedule_though_the_server_is_far_behind(
    generator: Generator,
) -> None:
    arrivals = OpenLoop(stages=(Stage(rate=400, duration_s=1),))
    work = Workload(request=Request(), arrivals=arrivals, connections=20)
    with served("0.5") as port:
        begin = time.monotonic()
        result = generator.run(work, f"http://127.0.0.1:{port}")
    # The whole schedule would take ten seconds at the 40/s of the server.
    assert time.monotonic() - begin < 9
    assert len(result.requests) + result.unsent == 400
    unsent = (result.requests["error"] == "unsent").sum()
    assert unsent > 250
    (reason,) = [reason for reason in check(result, work).reasons if "never sent" in reason]
    assert reason.side == "server"
    assert f"{unsent} planned" in reason


@pytest.mark.parametrize("client", ["aiohttp", "httpx"])
def test_library_clients_give_up_waiting_requests_when_an_open_load_ends(
    generator: Generator, client: str
) -> None:
    arrivals = OpenLoop(stages=(Stage(rate=100, duration_s=0.5),))
    work = Workload.model_validate(
        {"request": Request(), "arrivals": arrivals, "connections": 5, "client": client}
    )
    with served("0.5") as port:
        result = generator.run(work, f"http://127.0.0.1:{port}")
    assert len(result.requests) == 50
    assert (result.requests["error"] == "unsent").sum() > 20


def stopped_for(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.alone
def test_a_worker_that_stood_still_keeps_its_schedule_and_records_the_lag(
    generator: Generator,
) -> None:
    work = Workload(request=Request(), arrivals=OpenLoop(stages=(Stage(rate=500, duration_s=2),)))
    with served("0.001") as port:
        threading.Timer(0.8, stopped_for, (generator.pids[0], 0.3)).start()
        result = generator.run(work, f"http://127.0.0.1:{port}")
    requests = result.requests
    # Every response time counts from the schedule that was fixed before the start.
    assert (requests["planned_ns"].diff().dropna() == 2_000_000).all()
    late_ms = (requests["started_ns"] - requests["planned_ns"]) / 1e6
    assert late_ms.max() > 250
    # Meanwhile a request was planned every 2 ms.
    assert (late_ms > 50).sum() > 100
    assert ((requests["done_ns"] - requests["planned_ns"]) / 1e6 >= late_ms).all()
    sides = [reason.side for reason in check(result, work).reasons if "client was late" in reason]
    assert sides == ["client"]


def test_users_beyond_the_limit_of_files_wait_for_a_connection_and_none_fails(
    generator: Generator, tmp_path: Path
) -> None:
    (pid,) = generator.pids
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (SPARE_FILES + 5, SPARE_FILES + 5))
    work = Workload(request=Request(), arrivals=ClosedLoop(users=20, requests=100))
    with served("0.02") as port:
        result = generator.run(work, f"http://127.0.0.1:{port}", folder=tmp_path)
    assert (result.requests["error"] == "").all()
    assert len(result.requests) == 100
    assert result.connections_opened == 5
    assert result.capped >= 15


def test_a_client_that_runs_out_of_files_refuses_its_load_and_not_the_server(
    generator: Generator, tmp_path: Path
) -> None:
    (pid,) = generator.pids
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    so_far, free_again = Progress(), 0

    def short_for_a_while(progress: Progress) -> None:
        nonlocal so_far, free_again
        so_far = progress
        if progress.failed >= 3:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            free_again = free_again or progress.finished
        elif progress.finished >= 3:
            # Open files stay open; a new connection finds no free descriptor.
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))

    def end_when_files_are_free_again() -> None:
        if free_again and so_far.finished > free_again:
            raise StopLoad("enough")

    work = Workload(
        request=Request(), connections="per_request",
        arrivals=ClosedLoop(users=3, duration_s=60, pacing_s=0.05),
    )  # fmt: skip
    with served("0.02") as port:
        url = f"http://127.0.0.1:{port}"
        result = generator.run(
            work, url, short_for_a_while, end_when_files_are_free_again, folder=tmp_path
        )
    kinds = result.requests["error"].value_counts()
    assert set(kinds.index) == {"", "files"}
    assert kinds["files"] >= 3
    (reason,) = [one for one in check(result, work).reasons if one.code == "client.failures"]
    assert reason.side == "client"
    assert "Too many open files" in reason.text
