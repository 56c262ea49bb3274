"""What the kernel counts: accept queues that overflow, threads that ran and waited, and groups."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perflab.host import meters
from perflab.host.listening_queues import QueueSampler
from perflab.host.meters import CgroupMeter, ProcessTable
from perflab.host.thread_accounts import ServiceAccount, account_of, accounts_of

BACKLOG = 2


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """Open a server that never accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as server:
        yield server


def knock(server: socket.socket, times: int, until: ExitStack) -> None:
    """Try to connect so many times, without a wait."""
    for _ in range(times):
        client = until.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(server.getsockname())


def test_a_full_backlog_is_recorded_from_the_moment_it_is_full(listening) -> None:
    sampler = QueueSampler({"shop": listening.getsockname()[1]})
    sampler.start()
    with ExitStack() as until:
        stranger = until.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
        knock(stranger, BACKLOG + 4, until)
        time.sleep(0.2)
        full_ns = time.monotonic_ns()
        knock(listening, BACKLOG + 4, until)
        time.sleep(0.2)
        sampler.stop()
    queues = sampler.table()
    assert set(queues["service"]) == {"shop"}
    before, after = queues[queues["t_ns"] < full_ns], queues[queues["t_ns"] >= full_ns]
    # A sample has the instant of its begin, so the last one before may see a part of the overflow.
    before = before.iloc[:-1]
    assert before["drops"].max() == before["waiting"].max() == 0
    assert after["drops"].iloc[-1] >= 3
    assert (after["waiting"].iloc[-1], after["backlog"].iloc[-1]) == (BACKLOG + 1, BACKLOG)


CONTEXT = multiprocessing.get_context("fork")


def burn(core: int, until: float) -> None:
    os.sched_setaffinity(0, {core})
    while time.monotonic() < until:
        pass


def test_threads_that_share_a_core_wait_as_long_as_the_other_runs() -> None:
    core, until = min(os.sched_getaffinity(0)), time.monotonic() + 1.5
    pair = [CONTEXT.Process(target=burn, args=(core, until)) for _ in range(2)]
    for process in pair:
        process.start()
    try:
        time.sleep(1.2)
        accounts = accounts_of([process.pid for process in pair if process.pid])
    finally:
        for process in pair:
            process.join()
    assert len(accounts) == 2
    ran, waited = (sum(account[n] for account in accounts.values()) for n in (0, 1))
    # Other programs may wait in the same queue: then both wait longer, never less.
    assert waited > 0.5 * ran > 0


def test_a_thread_that_has_ended_keeps_its_account() -> None:
    account = ServiceAccount()
    account.add({(1, 1): (100, 10), (1, 2): (50, 5)})
    assert account.add({(1, 1): (120, 12)}) == (170, 17)
    assert account.add({(1, 1): (7, 3)}) == (177, 20), "its number was given to another"


@pytest.mark.parametrize("text", ["0 0 0\n", "", "1 2\n"])
def test_a_kernel_that_keeps_no_account_gives_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "schedstat").write_text(text)
    assert account_of(str(tmp_path)) is None


OWN = "user.slice/session-1.scope"
CPU_STAT = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"


# The machine that runs the tests may have only version 1.
@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a root of version 2 with the group of this process."""
    group = tmp_path / OWN
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text(CPU_STAT)
    (group / "memory.current").write_text("12582912\n")
    (group / "memory.stat").write_text("anon 1048576\ninactive_file 4194304\nactive_file 9\n")
    monkeypatch.setattr(meters, "GROUPS", tmp_path)
    monkeypatch.setattr(meters, "groups_of", lambda _: {"": f"/{OWN}"})
    return tmp_path


def test_a_container_has_the_cpu_and_memory_of_its_group_less_the_cache_that_nobody_uses(
    unified: Path,
) -> None:
    meter = CgroupMeter(os.getpid())
    reading = meter.read(ProcessTable())
    assert reading is not None
    assert (reading.cpu_ns, reading.memory_bytes) == (1_500_000_000, 8_388_608)
    assert meter.held_bytes(ProcessTable()) == 8_388_608
    (unified / OWN / "cgroup.procs").write_text("12\n34\n")
    assert meter.members(ProcessTable()) == [12, 34]
    (unified / OWN / "cpu.stat").unlink()
    assert meter.read(ProcessTable()) is None
