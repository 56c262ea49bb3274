"""A service under test, started from its own description as a plain process."""

from __future__ import annotations

import json
import os
import random
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from perflab.errors import StackError
from perflab.paths import open_dir, services_dir
from perflab.stacks import environments
from perflab.stacks.asking import status_of
from perflab.stacks.backend import HOST, Labels, Launch
from perflab.stacks.environments import Environment
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.process_instance import ProcessInstance
from perflab.stacks.spec import ServiceSpec, load_service
from tests.stacks.asking import Answer, call, wait_until

__all__ = ["Answer", "call", "wait_until"]

SECRET = secrets.token_urlsafe(24)


def quiet_port() -> int:
    """Return a free port below those that the kernel gives to outgoing connections.

    A port of theirs could be taken between this look and the service's start.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(max(1024, lowest - 12_000), lowest), 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


@dataclass
class Service:
    """One running service; ``again`` starts it anew on the data it left."""

    backend: ProcessBackend
    launch: Launch
    instance: ProcessInstance

    @property
    def port(self) -> int:
        return self.launch.port

    @property
    def control_port(self) -> int:
        return self.launch.control_port

    @property
    def data(self) -> Path:
        return open_dir() / "data" / self.launch.labels.stack / self.launch.labels.service

    def is_healthy(self) -> bool:
        health = self.launch.spec.health
        if not health.command:
            return status_of(self.control_port, health.http) == 200
        try:
            self.instance.run(health.command)
        except StackError:
            return False
        return True

    def wait_healthy(self, timeout_s: float = 60.0) -> Service:
        wait_until(
            lambda: self.is_healthy() or bool(self.instance.exit_reason()), timeout_s=timeout_s
        )
        assert not self.instance.exit_reason(), self.instance.log()
        return self

    def wait_ended(self) -> str:
        wait_until(lambda: bool(self.instance.exit_reason()), timeout_s=10)
        return self.instance.exit_reason()

    def again(self) -> Service:
        # A process that ended but was not waited for still has its number, and looks alive.
        self.instance._child.wait(timeout=10)
        self.instance = self.backend.start(self.launch)
        return self


# What starts services that end with the module: the fixture ``started``.
Start = Callable[..., Service]


def start(name: str, addresses: dict[str, int] | None = None, **settings: Any) -> Service:
    """Start a service; ``addresses`` gives the port of each role that it needs."""
    backend, spec = ProcessBackend(), load_service(name)
    backend.prepare(spec)
    stack = f"services-{secrets.token_hex(4)}"
    port = quiet_port()
    launch = Launch(
        spec=spec,
        labels=Labels(stack, name, "run", port),
        settings=spec.with_defaults(settings),
        needed=addresses or {},
        port=port,
        control_port=quiet_port() if spec.control else port,
        cores=(0,),
        secret=SECRET,
    )
    return Service(backend, launch, backend.start(launch))


def environment_of(spec: ServiceSpec) -> Environment:
    """Return the environment of a service, made when it is not there, with its artifacts."""
    backend = ProcessBackend()
    backend.prepare(spec)
    return environments.environment(spec, backend.environments)


def artifacts_of(name: str) -> Path:
    """Return what the service's preparation has made."""
    backend = ProcessBackend()
    return backend.artifacts / f"{name}-{backend.prepare(load_service(name))}"


def told_inside(name: str, code: str) -> Any:
    """Run code beside a service's sources, in its environment; return the JSON that it prints."""
    environment = environment_of(load_service(name))
    done = subprocess.run(
        [environment.python, "-c", code], cwd=services_dir() / name, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(services_dir() / "common"), **environment.variables()},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def use_packages_of(name: str) -> None:
    """Let this process import what a service has installed, after what the lab has itself.

    What both have is then the lab's: only the service's own process shows its versions.
    """
    folder = str(environment_of(load_service(name)).packages)
    if folder not in sys.path:
        sys.path.append(folder)


def database(postgres: Service, password: str = SECRET) -> Any:
    """Connect to a PostgreSQL service; each statement is a transaction."""
    connection = psycopg2.connect(
        host=HOST, port=postgres.port, dbname="perflab", user="perflab", password=password
    )
    connection.autocommit = True
    return connection


def value_of(postgres: Service, statement: str) -> Any:
    """Return the one value that a statement gives."""
    with closing(database(postgres)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def server_pid(postgres: Service) -> int:
    """Return the process id of a PostgreSQL service's main process."""
    return int((postgres.data / "cluster" / "postmaster.pid").read_text().split()[0])


def counts(service: Service) -> dict[str, Any]:
    return dict(call(service.port, "GET", "/counts").body)


def until(
    service: Service, true: Callable[[dict[str, Any]], bool], timeout_s: float = 20.0
) -> None:
    """Wait until a service's counts are as they should be."""
    wait_until(lambda: true(counts(service)), timeout_s)
