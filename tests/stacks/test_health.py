"""Waiting for services: the first cause is named, at once, and a stop is heard."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from perflab.errors import RunInterrupted, ServiceFailed
from perflab.stacks.backend import Launch, free_port
from perflab.stacks.labels import Labels
from perflab.stacks.launching import wait_healthy
from perflab.stacks.process_instance import ProcessInstance
from perflab.stacks.spec import load_service


@pytest.fixture
def started() -> Iterator[dict[str, Any]]:
    """Processes that never become healthy, in place of a database and of what needs it."""
    instances = {}
    for name in ("database", "service"):
        launch = Launch(
            spec=load_service("echo"),
            labels=Labels("health", name, "run"),
            settings={},
            addresses={},
            port=free_port(),
            control_port=free_port(),
            cores=(0,),
            secret="",
        )
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        instances[name] = (
            ProcessInstance(launch, child, {}, launch.spec.folder / "none", {}),
            child,
        )
    yield instances
    for _, child in instances.values():
        child.kill()
        child.wait()


def test_of_a_dependency_and_its_dependent_that_died_the_dependency_is_named(
    started: dict[str, Any],
) -> None:
    instances = {name: instance for name, (instance, _) in started.items()}
    for _, child in reversed(started.values()):
        child.kill()
    began = time.monotonic()
    with pytest.raises(ServiceFailed, match="'database': was ended by SIGKILL"):
        wait_healthy(["service"], instances, lambda: "")
    assert time.monotonic() - began < 10


def test_a_service_that_died_while_it_started_says_so(started: dict[str, Any]) -> None:
    instances = {name: instance for name, (instance, _) in started.items()}
    started["service"][1].kill()
    with pytest.raises(ServiceFailed, match="'service': died while starting: it was ended by"):
        wait_healthy(["service"], instances, lambda: "")


def test_a_stop_is_heard_while_no_service_is_healthy(started: dict[str, Any]) -> None:
    instances = {name: instance for name, (instance, _) in started.items()}
    with pytest.raises(RunInterrupted, match="while services started: enough"):
        wait_healthy(["database", "service"], instances, lambda: "enough")
