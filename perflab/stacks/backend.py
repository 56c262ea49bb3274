"""What a backend must be able to do, and the labels by which clean-up finds what the lab starts.

Containers and volumes carry Docker labels; plain processes carry labels in their environment, which
the kernel keeps readable until the process ends. The lab trusts only what runs under the user's id.
"""

from __future__ import annotations

import errno
import os
import random
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from perflab.errors import MachineShort, StackError
from perflab.host.meters import Meter, ProcessTable, Reading
from perflab.host.shortages import told
from perflab.paths import lock_path
from perflab.stacks.commands import NO_WORK, Interrupted, Work, never
from perflab.stacks.spec import ServiceSpec, Value, render

PROJECT = "perflab"
KINDS = ("run", "up")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,99}")
FIELDS = ("stack", "service", "kind", "port", "scope")
HOST = "127.0.0.1"
# A service may take so long to end, and where the user waits for it.
STOP_TIMEOUT_S, HASTY_TIMEOUT_S = 10.0, 2.0
# The copy is on disk when it ends: it must not be written while a trial is measured.
COPY = ("sh", "-c", 'cp -a --reflink=auto "$0/." "$1/" && sync -f "$1"')
# The kernel gives outgoing connections ports from 32,768 on. One of these could take a port of that
# range between the choice and the service's start.
PORTS, TRIED = range(15_000, 32_000), 200


class LabelProblem(ValueError):
    """The lab cannot have written these labels."""


@dataclass(frozen=True)
class Labels:
    """The stack that a service belongs to.

    ``kind`` is ``run`` for services of a measurement and ``up`` for those that a user keeps.
    ``scope`` is the path of the host lock: runs under different locks leave each other's services.
    """

    stack: str
    service: str
    kind: str
    port: int = 0
    scope: str = field(default_factory=lambda: str(lock_path()))

    def as_docker(self) -> dict[str, str]:
        """Return the labels of a container or volume."""
        labels = {_key(name, "docker"): str(getattr(self, name)) for name in FIELDS}
        return {**labels, "perflab.project": PROJECT, "perflab.uid": str(os.getuid())}

    def as_environment(self) -> dict[str, str]:
        """Return the same labels as environment variables of a process."""
        labels = {_key(name, "environment"): str(getattr(self, name)) for name in FIELDS}
        return {**labels, "PERFLAB_PROJECT": PROJECT}


def _key(name: str, where: str) -> str:
    return f"perflab.{name}" if where == "docker" else f"PERFLAB_{name.upper()}"


def read(values: Mapping[str, str], where: str) -> Labels:
    """Return the labels in ``values``; ``where`` is ``environment`` or ``docker``.

    Raises LabelProblem where a label is missing or is not as the lab writes it.
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


@dataclass(frozen=True)
class Launch:
    """Everything a backend needs to start one service instance.

    ``needed`` gives the port for each role that the service needs, ``provided`` further values by
    placeholder. ``secret`` is the stack's password, which only a file of the service's user holds.
    ``cpus`` is as in a node of the plan. With ``is_setup`` the service's setup runs in its place.
    """

    spec: ServiceSpec
    labels: Labels
    settings: Mapping[str, Value]
    needed: Mapping[str, int]
    port: int
    control_port: int
    cores: tuple[int, ...]
    secret: str = field(repr=False)
    cpus: float | None = None
    provided: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_setup: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command to start, with its placeholders."""
        setup = self.spec.setup if self.is_setup else None
        return setup.command if setup else self.spec.command

    def placeholders(self) -> dict[str, object]:
        """Return the values that both backends share; each backend adds its own paths."""
        values: dict[str, object] = {**self.settings, **self.provided}
        for role, port in self.needed.items():
            values |= {f"{role}.host": HOST, f"{role}.port": port}
        return values | {"host": HOST, "port": self.port, "control_port": self.control_port}

    def max_files(self) -> int | None:
        """Return how many descriptors each process of the service may have; None: no limit."""
        text = render(self.spec.max_files, self.placeholders())
        return int(text) if text else None


def rendered(words: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Fill the placeholders of a command."""
    return [render(word, values) for word in words]


class Instance(Protocol):
    """A running service, whichever backend runs it."""

    launch: Launch

    def follow(self) -> str:
        """Find out what answers for the healthy service; return a sentence if that is unusual."""

    def has_left(self) -> bool:
        """Return whether a command that only starts a server has ended, and left it behind."""

    def pause(self) -> None:
        """Freeze the service; it uses no CPU until it is resumed."""

    def resume(self) -> None:
        """Let the service run again."""

    def stop(self, keep_data: bool = False, interrupted: Interrupted = never) -> bool:
        """End the service and remove its data; return whether it did not end in order.

        It never raises for a dead service. Once the user has interrupted, it is killed after 2 s
        instead of 10.
        """

    def exit_status(self) -> int | None:
        """Return the exit status of the first process (a signal: negative); None while it runs."""

    def exit_reason(self) -> str:
        """Return why the service no longer runs, or an empty string while it does."""

    def log(self, lines: int = 30) -> str:
        """Return the service's last log lines."""

    def run(
        self, command: Sequence[str], timeout_s: float = 30.0, interrupted: Interrupted = never
    ) -> str:
        """Fill a command's placeholders, run it beside the service, and return its output.

        Raises StackError where the command cannot run, failed, or took too long.
        """

    @property
    def pid(self) -> int:
        """Return the id of the service's first process, as this host numbers it."""

    def meter(self) -> Meter:
        """Return the meter of the service's CPU and memory.

        May raise OSError where the service has ended.
        """


class Backend(Protocol):
    """A way to run services."""

    name: str
    network_path: str

    def prepare(self, spec: ServiceSpec, work: Work = NO_WORK) -> str:
        """Make what the service needs to start (an image, a trained model); return its identity."""

    def versions(self, spec: ServiceSpec) -> dict[str, str]:
        """Return the versions of all that a prepared service has installed, Python too, by name."""

    def clear(self, stack: str) -> None:
        """Remove the data that a crashed stack of this name left."""

    def cpu_obstacle(self) -> str:
        """Return why the backend cannot limit CPU, and the way out; empty if it can."""

    def copy_data(self, launch: Launch, stack: str, work: Work) -> None:
        """Let a service begin with a copy of the data that it left in another ``stack``.

        Raises MachineShort where the disk is full.
        """

    def start(self, launch: Launch) -> Instance:
        """Start one service and return without waiting until it is healthy."""


def used_by(instances: Iterable[Instance], table: ProcessTable) -> Reading:
    """Return CPU time so far and memory of services together; one that has ended adds nothing."""
    cpu_ns = memory_bytes = 0
    for instance in instances:
        with suppress(OSError):
            if reading := instance.meter().read(table):
                cpu_ns += reading.cpu_ns
                memory_bytes += reading.memory_bytes
    return Reading(cpu_ns, memory_bytes)


def printed_by(words: Sequence[str], status: int, output: str, problems: str) -> str:
    """Return a command's output; raise StackError, with its output, where the command failed."""
    if status:
        raise StackError(f"'{' '.join(words)}' failed: {problems.strip() or output.strip()}")
    return output


def refuse_failed_copy(service: str, status: int, output: str) -> None:
    """Raise MachineShort for a full disk, and StackError for all else that ended a copy."""
    full = os.strerror(errno.ENOSPC)
    problem = f"the data of '{service}' cannot be copied"
    if status and full in output:
        raise MachineShort(
            f"{problem}: {full}. Way out: make room on that disk, let the setup write less, or set "
            "PERFLAB_STATE to a folder on a larger disk"
        )
    if status:
        raise StackError(f"{problem}: {output.strip()[:500]}")


def hold_port() -> socket.socket:
    """Return a socket that holds a free loopback port for a service until it is closed.

    It is bound to the UDP port, so that the service can listen on the TCP port of the same number.
    No run chooses a port that another holds, and no outgoing connection gets it.

    Raises StackError where no port is free.
    """
    for port in random.SystemRandom().sample(PORTS, TRIED):
        try:
            held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        except OSError as error:
            raise MachineShort(f"no port can be held: {told(error) or error}") from None
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, suppress(OSError):
            held.bind((HOST, port))
            probe.bind((HOST, port))
            return held
        held.close()
    raise StackError(f"none of {TRIED} ports between {PORTS[0]} and {PORTS[-1]} is free")
