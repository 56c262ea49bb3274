"""Limits on the memory of services, which the kernel keeps in both backends."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import BackendUnavailable, ServiceFailed
from perflab.host.control_groups import memory_folder, memory_kills
from perflab.host.placing import placement
from perflab.stacks import leftovers, memory_group, stack_folders
from perflab.stacks.choice import choose
from perflab.stacks.losses import loss
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents

LIMIT_MIB = 64
BODY_BYTES = 10_000_000
LIMIT_FILES = ("memory.limit_in_bytes", "memory.max")


def echo(memory_mib: int | None) -> StackPlan:
    settings = {"body_bytes": BODY_BYTES}
    node = Node(name="echo", service="echo", settings=settings, memory_mib=memory_mib)
    return StackPlan(nodes=(node,))


@pytest.fixture
def limited(backend_name: str) -> Iterator[Residents]:
    """The echo service within a limit, and beside it one without."""
    plans = {"limited": echo(LIMIT_MIB), "free": echo(None)}
    residents = Residents(choose(backend_name), plans, placement(), f"memory-{os.getpid()}")
    residents.prepare()
    residents.start()
    yield residents
    residents.stop()
    assert leftovers.everything() == []


def ask_without_reading(port: int, connections: int) -> list[socket.socket]:
    """Let the service keep an answer of 10 MB for every connection."""
    opened = []
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(b"GET / HTTP/1.1\r\nHost: it\r\n\r\n")
        opened.append(connection)
    return opened


@pytest.mark.slow
def test_a_service_that_takes_more_than_its_limit_is_named_with_the_limit(
    limited: Residents,
) -> None:
    limited.activate("limited")
    instance = limited.instance("limited", "echo")
    folder = memory_folder(instance.pid)
    assert LIMIT_MIB * 1024 * 1024 in [
        int((folder / name).read_text()) for name in LIMIT_FILES if (folder / name).exists()
    ]
    assert instance.memory_kills() == 0
    assert limited.lost("limited") == {}
    opened = ask_without_reading(instance.launch.port, 20)
    wait_until(lambda: bool(instance.exit_reason()))
    with pytest.raises(ServiceFailed, match=r"SIGKILL: out of memory, .* its limit of 64 MiB"):
        limited.check_alive("limited")
    for connection in opened:
        connection.close()


@pytest.mark.slow
def test_a_service_without_a_limit_takes_what_it_needs(limited: Residents) -> None:
    limited.activate("free")
    instance = limited.instance("free", "echo")
    opened = ask_without_reading(instance.launch.port, 20)
    time.sleep(1)
    assert not instance.exit_reason()
    assert instance.memory_kills() == 0
    for connection in opened:
        connection.close()


def wait_until(true: Any, timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_where_no_limit_can_be_kept_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> tuple[int, Path]:
        raise PermissionError("no control group of this user's")

    monkeypatch.setattr(memory_group, "_parent", refused)
    residents = Residents(choose("process"), {"it": echo(LIMIT_MIB)}, placement(), "refused")
    with pytest.raises(BackendUnavailable, match=r"memory_mib of echo cannot .*--backend docker"):
        residents.prepare()
    assert leftovers.everything() == []


@pytest.mark.skipif(os.getuid() != 0, reason="control groups of one's own need root or delegation")
def test_here_limits_can_be_kept_and_what_a_crash_left_is_removed() -> None:
    assert memory_group.obstacle() == ""
    group = memory_group.MemoryGroup(f"crash-{os.getpid()}", 64)
    folder = stack_folders.make_stack("crash")
    stack_folders.record_group(folder, "echo", group.folder)
    assert group.folder.exists()
    leftovers.remove_stack("crash")
    assert not group.folder.exists()


def test_no_other_folder_is_removed_as_a_group(tmp_path: Path) -> None:
    kept = tmp_path / f"{memory_group.PREFIX}mine"
    kept.mkdir()
    memory_group.remove(kept)
    assert kept.exists()


def test_the_kernels_count_of_kills_is_read_in_both_versions(tmp_path: Path) -> None:
    assert memory_kills(tmp_path) == 0
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\n")
    assert memory_kills(tmp_path) == 3
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert memory_kills(tmp_path) == 1


def test_a_child_killed_for_its_memory_is_a_loss_of_the_service() -> None:
    def service(kills: int, ended: str = "") -> Any:
        return SimpleNamespace(
            memory_kills=lambda: kills,
            exit_reason=lambda: ended,
            launch=SimpleNamespace(memory_mib=64),
        )

    assert loss(service(0), []) == ""
    assert loss(service(2), []) == (
        "2 of its processes: out of memory, killed by the kernel at its limit of 64 MiB "
        "(memory_mib of its node)"
    )
    assert loss(service(2, ended="was ended by SIGKILL"), []) == ""
