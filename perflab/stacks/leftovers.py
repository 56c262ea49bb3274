"""The lab's services on this machine, and the end of those that a crash or a user left behind.

They are found by label, among what runs as this user.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import BackendUnavailable, HostBusy
from perflab.host.lock import UNSEEN, Holder, holder, measurement_lock
from perflab.host.processes import alive, identity
from perflab.paths import lock_path, open_dir, state_dir
from perflab.stacks import stack_folders
from perflab.stacks.labels import PROJECT, LabelProblem, Labels, check_name, read
from perflab.stacks.service_processes import end, family, labelled, working_in


@dataclass(frozen=True, kw_only=True)
class Found(Labels):
    """One service of this user's that carries the lab's labels.

    ``identity`` is the id of a container or process; ``began`` tells a process from a later one of
    the same id (:func:`perflab.host.processes.identity`).
    """

    backend: str
    identity: str
    state: str
    began: str = ""

    @property
    def is_inside(self) -> bool:
        """Whether it is under the host lock in force; runs under others clean up for themselves."""
        return self.scope == str(lock_path())


def survey() -> list[Found]:
    """Look for the lab's services in both backends, whatever lock they are under."""
    client = docker_client()
    return processes() + (containers(client) if client else [])


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
    services = []
    for pid, labels in ours.items():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            own: dict[str, Any] = {"state": process.status(), "began": identity(pid)}
            if process.ppid() not in ours and own["began"]:
                services.append(Found(**vars(labels), backend="process", identity=str(pid), **own))
    return services


def containers(client: Any) -> list[Found]:
    """Look for services that run as containers of this user, dead ones too."""
    ours = {"label": [f"perflab.project={PROJECT}", f"perflab.uid={os.getuid()}"]}
    services = []
    for container in client.containers.list(all=True, ignore_removed=True, filters=ours):
        with contextlib.suppress(LabelProblem):
            own = {"identity": container.id, "state": container.status}
            labels = read(container.labels, "docker")
            services.append(Found(**vars(labels), backend="docker", **own))
    return services


def everything() -> list[Found]:
    """Return every service of the lab under the host lock in force."""
    return [item for item in survey() if item.is_inside]


def remove(services: Iterable[Found]) -> list[Found]:
    """End and remove services, their volumes and their folders; return what was removed."""
    removed = list(services)
    plain = [item for item in removed if item.backend == "process"]
    contained = [item for item in removed if item.backend == "docker"]
    _end_processes(plain)
    for stack in {item.stack for item in plain}:
        _remove_folders(stack)
    client = docker_client() if contained else None
    for item in contained if client else []:
        _remove_container(client, item.identity)
    for stack in {item.stack for item in contained}:
        _remove_volumes(stack, client)
    return removed


def _end_processes(services: Iterable[Found]) -> None:
    # SIGINT is PostgreSQL's fast shutdown and ends every other service of the lab too. All at
    # once: what waits for another's end must not cost its time again.
    pids = [pid for item in services if (pid := alive(item.began)) is not None]
    end((process for pid in pids for process in family(pid)), signal.SIGINT, timeout_s=5.0)


def _remove_container(client: Any, identity: str) -> None:
    from docker.errors import APIError

    with contextlib.suppress(APIError):
        client.containers.get(identity).remove(force=True, v=True)


def _remove_folders(stack: str) -> None:
    """Remove a stack's logs and data, and first whatever still works in them."""
    check_name(stack, "the stack's name")
    for folder in (state_dir() / "stacks" / stack, open_dir() / "data" / stack):
        end(working_in(folder), signal.SIGINT, timeout_s=1.0)
    stack_folders.remove_stack(stack)


def _remove_volumes(stack: str, client: Any | None) -> None:
    if client is None:
        return
    from docker.errors import APIError

    own = {"label": [f"perflab.stack={stack}", f"perflab.uid={os.getuid()}"]}
    for volume in client.volumes.list(filters=own):
        with contextlib.suppress(APIError):
            volume.remove(force=True)


def remove_of_kind(kind: str | None, stack: str | None = None) -> list[Found]:
    """Remove services by kind (``run``, ``up``; None for all) and, if given, by stack."""
    return remove(
        item
        for item in everything()
        if (kind is None or item.kind == kind) and (stack is None or item.stack == stack)
    )


def remove_unmeasured() -> tuple[list[Found], Holder | None]:
    """Remove all services but those of a measurement, and return its holder.

    The lock is taken meanwhile: who starts to measure waits, and does not lose services.
    """
    try:
        with measurement_lock("perflab stack down"):
            return remove_of_kind(None), None
    except HostBusy:
        return remove_of_kind("up"), holder() or UNSEEN


def remove_stack(stack: str) -> None:
    """Remove all that is left of one stack, also when none of its services is."""
    remove_of_kind("run", stack)
    _remove_folders(stack)
    _remove_volumes(stack, docker_client())


def orphaned_folders() -> list[Path]:
    """Return the folders of stacks of which nothing is left, nor the process that made them.

    Services of every scope count, and so does a maker that has not started its first one yet.
    """
    up = {item.stack for item in survey()}
    idle = [folder for folder in stack_folders.folders() if folder.name not in up]
    return [folder for folder in idle if stack_folders.maker_of(folder) in (None, os.getpid())]


def log_of(item: Found, lines: int) -> str:
    """Return the last log lines of a service that is up."""
    if item.backend == "process":
        return stack_folders.tail(stack_folders.log_path(item.stack, item.service), lines)
    client = docker_client()
    if client is None:
        return ""
    return str(client.containers.get(item.identity).logs(tail=lines).decode(errors="replace"))
