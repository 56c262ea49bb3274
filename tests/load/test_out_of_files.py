"""Load workers without free descriptors: their cap on connections and their failures."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.load.checks.selfcheck import check
from perflab.load.clients.client import SPARE_FILES
from perflab.load.workers.generator import Generator, Progress
from perflab.load.workload import ClosedLoop, Request, Workload
from tests.load.processes import a_worker, served


@pytest.fixture
def worker_and_url() -> Iterator[tuple[Generator, str]]:
    with served("0.02") as (port, _), a_worker() as generator:
        yield generator, f"http://127.0.0.1:{port}"


def test_users_beyond_the_limit_of_files_wait_for_a_connection_and_none_fails(
    worker_and_url: tuple[Generator, str], tmp_path: Path
) -> None:
    generator, url = worker_and_url
    (pid,) = generator.pids
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (SPARE_FILES + 5, SPARE_FILES + 5))
    work = Workload(request=Request(), arrivals=ClosedLoop(users=20, requests=100))
    result = generator.run(work, url, folder=tmp_path)
    assert (result.requests["error"] == "").all()
    assert len(result.requests) == 100
    assert result.connections_opened == 5
    assert result.capped >= 15


def test_a_client_that_runs_out_of_files_refuses_its_load_and_not_the_server(
    worker_and_url: tuple[Generator, str], tmp_path: Path
) -> None:
    generator, url = worker_and_url
    (pid,) = generator.pids
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    reports = 0

    def short_for_a_while(_: Progress) -> None:
        nonlocal reports
        reports += 1
        if reports == 1:
            # Open files stay open; a new connection finds no free descriptor.
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        elif reports == 2:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)

    work = Workload(
        request=Request(), connections="per_request",
        arrivals=ClosedLoop(users=3, duration_s=1.5, pacing_s=0.05),
    )  # fmt: skip
    result = generator.run(work, url, on_progress=short_for_a_while, folder=tmp_path)
    kinds = result.requests["error"].value_counts()
    assert set(kinds.index) == {"", "files"}
    assert kinds["files"] >= 3
    (reason,) = [one for one in check(result, work).reasons if one.code == "client.failures"]
    assert reason.side == "client"
    assert "Too many open files" in reason.text
