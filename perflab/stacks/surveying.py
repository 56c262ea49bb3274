"""What of the lab runs on this machine: found by label, and believed only when it is our own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from perflab.errors import BackendUnavailable, UnsafePlace
from perflab.host.processes import identity
from perflab.host.strangers import printable, user_name
from perflab.paths import lock_path, state_dir
from perflab.stacks import stack_folders
from perflab.stacks.labels import PROJECT, LabelProblem, Labels, read
from perflab.stacks.tokens import is_token


@dataclass(frozen=True)
class Found:
    """One service of this user's that carries the lab's labels.

    ``identity`` is the id of a container or process; ``began`` tells a process from a later one of
    the same id (:func:`perflab.host.processes.identity`).
    """

    stack: str
    service: str
    kind: str
    backend: str
    identity: str
    port: int
    state: str
    scope: str
    began: str = ""


@dataclass(frozen=True)
class Survey:
    """Services of this user's, in every scope, and a word on each that was not believed."""

    found: tuple[Found, ...]
    warnings: tuple[str, ...]

    def inside(self, scope: str | None = None) -> list[Found]:
        """Return the services under this host lock (the one in force unless named)."""
        scope = scope or str(lock_path())
        return [item for item in self.found if item.scope == scope]

    def outside(self, scope: str | None = None) -> list[Found]:
        """Return the services under other host locks; their runs clean up after themselves."""
        inside = self.inside(scope)
        return [item for item in self.found if item not in inside]


def survey() -> Survey:
    """Look for the lab's services in both backends."""
    client = docker_client()
    parts = [processes(), *([containers(client)] if client else [])]
    return Survey(
        tuple(item for part in parts for item in part.found),
        tuple(text for part in parts for text in part.warnings),
    )


def docker_client() -> Any | None:
    """Return a Docker client when an engine answers, else None."""
    from perflab.stacks.docker_backend import connect

    try:
        return connect()
    except BackendUnavailable:
        return None


def processes() -> Survey:
    """Look for services that run as processes; children of a service are part of it."""
    ours, warnings = believed()
    found = []
    for pid, labels in ours.items():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            began = identity(pid)
            if process.ppid() not in ours and began:
                found.append(_found(labels, "process", str(pid), process.status(), began))
    return Survey(tuple(found), tuple(warnings))


def believed() -> tuple[dict[int, Labels], list[str]]:
    """Return every process of the lab's by its id, and a word on each that only says it is one."""
    doubts: dict[int, str] = {}
    ours: dict[int, Labels] = {}
    claiming = dict(_claiming())
    try:
        for pid, (_, environment) in claiming.items():
            try:
                ours[pid] = _proven(environment)
            except LabelProblem as problem:
                doubts[pid] = f"process {pid} says it is the lab's, and is left alone: {problem}"
        ours |= dict(stack_folders.recorded())
    except (UnsafePlace, LabelProblem, OSError) as error:
        return ours, [f"which processes are the lab's cannot be told: {error}"]
    # Children inherit their parent's labels: one word for all of them.
    return ours, [text for pid, text in doubts.items() if claiming[pid][0] not in claiming]


def of_service(stack: str, service: str) -> list[psutil.Process]:
    """Return the processes that are believed to be of one service of a stack."""
    found = []
    for pid, labels in believed()[0].items():
        if (labels.stack, labels.service) == (stack, service):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
    return found


def _claiming() -> Iterator[tuple[int, tuple[int, dict[str, str]]]]:
    """Yield each process of one's own that carries the lab's labels: parent and environment.

    Environments of other users' processes are not read: their owner could make that block.
    """
    own = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or set(process.uids()) != {own}:
                continue
            environment = process.environ()
            if environment.get("PERFLAB_PROJECT") == PROJECT and "PERFLAB_SERVICE" in environment:
                yield process.pid, (process.ppid(), environment)


def _proven(environment: dict[str, str]) -> Labels:
    labels = read(environment, "environment")
    if not is_token(environment.get("PERFLAB_TOKEN", "")):
        raise LabelProblem(f"it does not know the secret of {state_dir()}")
    return labels


def containers(client: Any) -> Survey:
    """Look for services that run as containers, dead ones too."""
    found, warnings = [], []
    for container in client.containers.list(
        all=True, ignore_removed=True, filters={"label": f"perflab.project={PROJECT}"}
    ):
        try:
            labels = _own_labels(container.labels)
        except LabelProblem as problem:
            name = printable(container.name)
            warnings.append(f"container {name} says it is the lab's, and is left alone: {problem}")
            continue
        found.append(_found(labels, "docker", container.id, container.status))
    return Survey(tuple(found), tuple(warnings))


def _own_labels(values: dict[str, str]) -> Labels:
    labels = read(values, "docker")
    uid = values.get("perflab.uid", "")
    if uid != str(os.getuid()):
        known = uid.isascii() and uid.isdigit() and len(uid) < 10
        owner = user_name(int(uid)) if known else f"'{printable(uid)}'"
        raise LabelProblem(f"its user is {owner}")
    return labels


def _found(labels: Labels, backend: str, known: str, state: str, began: str = "") -> Found:
    stack, service, kind = labels.stack, labels.service, labels.kind
    return Found(stack, service, kind, backend, known, labels.port, state, labels.scope, began)
