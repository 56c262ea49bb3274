"""The wait for services ends at once with the first cause, or with an interruption."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.errors import RunInterrupted, ServiceFailed, StackError
from perflab.stacks import backend
from perflab.stacks.backend import HOST, Labels, Launch, hold_port
from perflab.stacks.launching import wait_healthy
from perflab.stacks.process_backend import ProcessInstance
from perflab.stacks.spec import load_service

NOBODYS = 1  # a port on which nothing listens


@pytest.fixture
def started() -> Iterator[dict[str, ProcessInstance]]:
    """Start processes that never become healthy, for a database and its dependent."""
    instances = {}
    for name in ("database", "service"):
        launch = Launch(
            load_service("echo"), Labels("health", name, "run"), {}, {}, NOBODYS, NOBODYS, (0,), ""
        )
        child = subprocess.Popen(["sleep", "60"])
        instances[name] = ProcessInstance(launch, child, {}, Path("none"), {})
    yield instances
    for instance in instances.values():
        instance._child.kill()
        instance._child.wait()


def test_where_a_dependency_and_its_dependent_died_the_dependency_is_named(
    started: dict[str, ProcessInstance],
) -> None:
    for instance in reversed(started.values()):
        instance._child.kill()
    began = time.monotonic()
    with pytest.raises(ServiceFailed, match="'database': was ended by SIGKILL"):
        wait_healthy(["service"], started, lambda: "")
    assert time.monotonic() - began < 10
    with pytest.raises(ServiceFailed, match="'service': ended before it was healthy: it was"):
        wait_healthy(["service"], {"service": started["service"]}, lambda: "")


def test_an_interruption_ends_the_wait_for_healthy_services(
    started: dict[str, ProcessInstance],
) -> None:
    with pytest.raises(RunInterrupted, match="while services started: enough"):
        wait_healthy(["database", "service"], started, lambda: "enough")


def test_a_port_is_held_for_one_run_and_its_service_can_listen_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hold_port() as held:
        port = held.getsockname()[1]
        monkeypatch.setattr(backend, "PORTS", range(port, port + 1))
        monkeypatch.setattr(backend, "TRIED", 1)
        with pytest.raises(StackError, match="is free"):
            hold_port()
        with socket.create_server((HOST, port)):
            pass
    with socket.create_server((HOST, port)), pytest.raises(StackError, match="is free"):
        hold_port()
    hold_port().close()
