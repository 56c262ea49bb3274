"""What a backend must be able to do.

Labels on everything the lab starts, so that clean-up finds exactly ours.

Containers, volumes and images carry them as Docker labels; plain processes carry them in their
environment, which the kernel keeps readable until the process ends. They are believed only of what
runs under one's own user id.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from perflab.errors import StackError
from perflab.host.meters import Meter
from perflab.paths import lock_path
from perflab.stacks.patience import Interrupted, never
from perflab.stacks.spec import ServiceSpec, Value, render

PROJECT = "perflab"
KINDS = ("run", "up")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,99}")
FIELDS = ("stack", "service", "kind", "port", "scope")


class LabelProblem(ValueError):
    """Labels that the lab cannot have written."""


@dataclass(frozen=True)
class Labels:
    """Whose a service is.

    ``kind`` is ``run`` for a measurement's services (removed when the measurement is gone) and
    ``up`` for services that a user started to keep. ``scope`` is the path of the host lock: runs
    under different locks never clean up after each other.
    """

    stack: str
    service: str
    kind: str
    port: int = 0
    scope: str = field(default_factory=lambda: str(lock_path()))

    def as_docker(self) -> dict[str, str]:
        """Return the labels of a container or volume."""
        own = {_key(name, "docker"): str(getattr(self, name)) for name in FIELDS}
        return {**own, "perflab.project": PROJECT, "perflab.uid": str(os.getuid())}

    def as_environment(self) -> dict[str, str]:
        """Return the same labels as environment variables of a process."""
        own = {_key(name, "environment"): str(getattr(self, name)) for name in FIELDS}
        return {**own, "PERFLAB_PROJECT": PROJECT}


def _key(name: str, where: str) -> str:
    return f"perflab.{name}" if where == "docker" else f"PERFLAB_{name.upper()}"


def read(values: Mapping[str, str], where: str) -> Labels:
    """Return the labels found in an ``environment`` or of a ``docker`` object.

    Raises LabelProblem where one is missing, or is not as the lab writes it; the message says
    which.
    """
    stack, service, kind, port, scope = (values.get(_key(name, where), "") for name in FIELDS)
    check_name(stack, _key("stack", where))
    check_name(service, _key("service", where))
    if kind not in KINDS:
        raise LabelProblem(f"{_key('kind', where)} is {kind!r}")
    if not port.isdecimal():
        raise LabelProblem(f"{_key('port', where)} is {port!r}")
    return Labels(stack, service, kind, int(port), scope)


def check_name(text: str, label: str) -> None:
    """Raise LabelProblem unless the text can name a stack or service: it becomes part of a path."""
    if not NAME.fullmatch(text):
        raise LabelProblem(f"{label} is {text!r}")


HOST = "127.0.0.1"


@dataclass(frozen=True)
class Launch:
    """Everything a backend needs to start one service instance.

    ``addresses`` gives host and port for each role the service needs; ``secret`` is the stack's
    password: it must not be printed, and reaches a service in a file only its user can read.
    ``cpus`` limits them to a share of the time of their cores: 0.2 is a fifth of one core (None: no
    limit).
    """

    spec: ServiceSpec
    labels: Labels
    settings: Mapping[str, Value]
    addresses: Mapping[str, tuple[str, int]]
    port: int
    control_port: int
    cores: tuple[int, ...]
    secret: str = field(repr=False)
    cpus: float | None = None

    def placeholders(self) -> dict[str, object]:
        """Return the values both backends share; each adds its own places."""
        values: dict[str, object] = dict(self.settings)
        for role, (host, port) in self.addresses.items():
            values |= {f"{role}.host": host, f"{role}.port": port}
        return values | {"host": HOST, "port": self.port, "control_port": self.control_port}

    def secrets(self) -> dict[str, str]:
        """Return what the service reads from files that only its user can read, by placeholder.

        They are the stack's password and the user's own credentials (a JSON object of those that
        are set in the environment): in no command line and in no container's configuration, which
        ``docker inspect`` shows.
        """
        files = {"secret_file": self.secret} if self.spec.takes_secret else {}
        if self.spec.credentials:
            named = {name: os.environ.get(name) for name in self.spec.credentials}
            given = {name: value for name, value in named.items() if value}
            files["credentials_file"] = json.dumps(given)
        return files

    def max_files(self) -> int | None:
        """Return how many descriptors each of its processes may have; None: not limited by us."""
        text = render(self.spec.limits.files, self.placeholders())
        return int(text) if text else None


def rendered(words: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Fill the placeholders of a command."""
    return [render(word, values) for word in words]


class Instance(Protocol):
    """A running service, whichever backend runs it."""

    launch: Launch

    def pause(self) -> None:
        """Freeze it; it uses no CPU until resumed."""

    def resume(self) -> None:
        """Let it run again."""

    def stop(self) -> None:
        """End it in order and remove what it leaves; never raises for a dead service."""

    def exit_reason(self) -> str:
        """Return why it is no longer running, or an empty string while it is."""

    def log(self, lines: int = 30) -> str:
        """Return its last log lines."""

    def run(
        self, command: Sequence[str], timeout_s: float = 30.0, interrupted: Interrupted = never
    ) -> str:
        """Run a command, its placeholders filled, beside the service; return what it printed.

        Raises StackError where it cannot run, failed, or took too long.
        """

    @property
    def pid(self) -> int:
        """Return the id of its first process, as this host numbers it."""

    def meter(self) -> Meter:
        """Return the meter of its CPU and memory."""


class Backend(Protocol):
    """A way to run services."""

    name: str
    network_path: str

    def prepare(
        self,
        spec: ServiceSpec,
        tell: Callable[[str], None],
        interrupted: Interrupted = never,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Make what starting needs (an image, a trained model); return its identity.

        Processes that this takes carry ``environment``, the labels by which clean-up finds them.
        """

    def versions(self, spec: ServiceSpec) -> dict[str, str]:
        """Return name to version of all that a prepared service has installed, its Python too."""

    def clear(self, stack: str) -> None:
        """Remove the data that a crashed stack of this name left."""

    def cpu_obstacle(self) -> str:
        """Return why services' CPU cannot be limited here, and the way out; empty if it can."""

    def start(self, launch: Launch) -> Instance:
        """Start one service; it need not be healthy yet."""


def printed_by(words: Sequence[str], status: int, printed: str, problems: str) -> str:
    """Return what a command printed; raise StackError, with what it said, where it failed."""
    if status:
        raise StackError(f"'{' '.join(words)}' failed: {problems.strip() or printed.strip()}")
    return printed


def free_port() -> int:
    """Return a loopback port that nothing listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
