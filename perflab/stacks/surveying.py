"""What of the lab runs on this machine: found by label, among what runs as this user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from perflab.errors import BackendUnavailable
from perflab.host.processes import identity
from perflab.paths import lock_path
from perflab.stacks import stack_folders
from perflab.stacks.labels import PROJECT, LabelProblem, Labels, read


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

    @property
    def is_inside(self) -> bool:
        """Whether it is under the host lock in force; runs under others clean up for themselves."""
        return self.scope == str(lock_path())


def survey() -> list[Found]:
    """Look for the lab's services in both backends, whatever lock they are under."""
    client = docker_client()
    return [*processes(), *(containers(client) if client else [])]


def docker_client() -> Any | None:
    """Return a Docker client when an engine answers, else None."""
    from perflab.stacks.docker_backend import connect

    try:
        return connect()
    except BackendUnavailable:
        return None


def processes() -> list[Found]:
    """Look for services that run as processes; children of a service are part of it."""
    ours = labelled()
    found = []
    for pid, labels in ours.items():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            began = identity(pid)
            if process.ppid() not in ours and began:
                found.append(_found(labels, "process", str(pid), process.status(), began))
    return found


def labelled() -> dict[int, Labels]:
    """Return every process of the lab's by its id.

    Those of one's own carry labels; servers that run as another user are known by their record.
    """
    return dict(_own()) | dict(stack_folders.recorded())


def of_service(stack: str, service: str) -> list[psutil.Process]:
    """Return the processes of one service of a stack."""
    found = []
    for pid, labels in labelled().items():
        if (labels.stack, labels.service) == (stack, service):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
    return found


def _own() -> Iterator[tuple[int, Labels]]:
    own = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, LabelProblem):
            if process.pid == os.getpid() or set(process.uids()) != {own}:
                continue
            environment = process.environ()
            if environment.get("PERFLAB_PROJECT") == PROJECT:
                yield process.pid, read(environment, "environment")


def containers(client: Any) -> list[Found]:
    """Look for services that run as containers of this user, dead ones too."""
    own = [f"perflab.project={PROJECT}", f"perflab.uid={os.getuid()}"]
    found = []
    for container in client.containers.list(all=True, ignore_removed=True, filters={"label": own}):
        with contextlib.suppress(LabelProblem):
            labels = read(container.labels, "docker")
            found.append(_found(labels, "docker", container.id, container.status))
    return found


def _found(labels: Labels, backend: str, known: str, state: str, began: str = "") -> Found:
    stack, service, kind = labels.stack, labels.service, labels.kind
    return Found(stack, service, kind, backend, known, labels.port, state, labels.scope, began)
