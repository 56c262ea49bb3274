"""The wait for services ends at once with the first cause, or with an interruption."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perflab.errors import RunInterrupted, ServiceFailed, StackError
from perflab.stacks import backend, stack_folders, starting
from perflab.stacks.backend import (
    HOST,
    Labels,
    Launch,
    hold_port,
)
from perflab.stacks.hints import with_hints
from perflab.stacks.plan import Node
from perflab.stacks.process_instance import ProcessInstance
from perflab.stacks.spec import Health, load_service
from perflab.stacks.starting import start_all, wait_healthy
from tests.support.answering import answering

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


def test_no_service_starts_after_an_interruption() -> None:
    def start(resident: Node) -> ProcessInstance:
        pytest.fail(f"{resident.name} is started")

    with pytest.raises(RunInterrupted, match="before services started: enough"):
        start_all([Node(name="service", service="echo")], start, {}, lambda: "enough")


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


@pytest.mark.parametrize(
    ("status", "told"),
    [(404, "GET /healthy is answered with 404: mend health (--health PATH)"),
     (400, "GET /healthy is answered with 400: it may refuse the host 127.0.0.1 (Django"),
     (503, "GET /healthy is answered with 503\n")],
)  # fmt: skip
def test_a_health_check_that_is_answered_otherwise_is_told_with_its_status(
    started: dict[str, ProcessInstance], status: int, told: str
) -> None:
    instance = started["service"]
    health = Health(http="/healthy", timeout_s=0.2)
    spec = instance.launch.spec.model_copy(update={"of_user": True, "health": health})
    with answering(lambda *_: (status, "")) as port:
        launch = replace(instance.launch, spec=spec, port=port, control_port=port)
        instance.launch = launch
        with pytest.raises(ServiceFailed) as caught:
            wait_healthy(["service"], {"service": instance}, lambda: "")
    assert f"was not healthy within 0.2 s: {told}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("ANSWERS_WITHIN_S", 0.1, r"0\.1 s"), ("LAST_CHECK_S", 0.0, r"(?!10 s)[\d.]+ s")],
    ids=["each check ends in vain", "the only check is under way"],
)
def test_a_path_that_does_not_answer_in_time_is_told_and_ends_the_wait(
    started: dict[str, ProcessInstance],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: float,
    told: str,
) -> None:
    monkeypatch.setattr(starting, name, value)
    instance = started["service"]
    health = Health(http="/report", any_status=True, timeout_s=0.2)
    spec = instance.launch.spec.model_copy(update={"of_user": True, "health": health})
    # The kernel accepts, and nobody answers.
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        instance.launch = replace(instance.launch, spec=spec, port=port, control_port=port)
        text = rf"within 0\.2 s: GET /report did not answer within {told}: .*\(--health PATH\)"
        with pytest.raises(ServiceFailed, match=text):
            wait_healthy(["service"], {"service": instance}, lambda: "")


def failing(program: str, **environment: str) -> ProcessInstance:
    """Start a service of a user that is not healthy where the lab asks."""
    spec = load_service("echo").model_copy(update={"of_user": True, "environment": environment})
    labels = Labels("health", "service", "run")
    launch = Launch(spec, labels, {}, {}, NOBODYS, NOBODYS, (0,), "")
    stack_folders.make_stack(labels.stack)
    with stack_folders.log_path(labels.stack, labels.service).open("wb") as log:
        child = subprocess.Popen([sys.executable, "-c", program], stdout=log, stderr=log)
    return ProcessInstance(launch, child, {}, Path("none"), {})


def ended(instance: ProcessInstance) -> None:
    instance._child.kill()
    instance._child.wait()
    stack_folders.remove_folders("health")


def test_a_service_that_listens_elsewhere_is_told_with_its_address() -> None:
    port = hold_port().getsockname()[1]
    instance = failing(
        "import socket, time\n"
        f"held = socket.create_server(('127.0.0.2', {port}))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    try:
        until = time.monotonic() + 30
        while "ready" not in instance.log() and time.monotonic() < until:
            time.sleep(0.05)
        text = with_hints("was not healthy", instance)
        assert f"it listens at 127.0.0.2:{port}, and the lab asks 127.0.0.1:{NOBODYS}" in text
    finally:
        ended(instance)


def test_a_variable_that_the_service_did_not_get_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_URL", "here")
    monkeypatch.setenv("PASSED", "too")
    instance = failing(
        "import os; print('SHOP_URL is not set, PASSED is', flush=True); os.environ['SHOP_TOKEN']",
        PASSED="{env:PASSED}",
    )
    try:
        instance._child.wait()
        file = ", or [service.env] or env_file of perflab.toml)"
        text = with_hints("ended", instance)
        assert f"(--env SHOP_TOKEN=... --env SHOP_URL{file}" in text
    finally:
        ended(instance)


SETTINGS = """2 validation errors for Settings
shop_url
  Field required [type=missing, input_value={}, input_type=dict]
shop_unknown
  Field required [type=missing, input_value={}, input_type=dict]
"""


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (SETTINGS, "(--env SHOP_URL)"),
        ("sh: 1: MISSING_ONE: parameter not set", "(--env MISSING_ONE=...,"),
        ("start.sh: line 3: MISSING_ONE: unbound variable", "(--env MISSING_ONE=...,"),
        ("start.sh: line 3: MISSING_ONE: parameter null or not set", "(--env MISSING_ONE=...,"),
        ("OSError: [Errno 98] Address already in use", "or a variable (--env NAME={port})"),
        ("Error: listen EADDRINUSE: address 127.0.0.1:8123", "(--env NAME={port})"),
    ],
)
def test_a_variable_that_settings_or_a_shell_lack_is_named(
    monkeypatch: pytest.MonkeyPatch, log: str, told: str
) -> None:
    monkeypatch.setenv("SHOP_URL", "here")
    instance = failing(f"raise SystemExit({log!r})")
    try:
        instance._child.wait()
        assert told in with_hints("ended", instance)
    finally:
        ended(instance)
