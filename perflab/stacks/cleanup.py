"""Find the lab's services on this machine, and remove those that a crash or a user left behind."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import HostBusy
from perflab.host.lock import UNSEEN, Holder, holder, measurement_lock
from perflab.host.processes import alive, identity
from perflab.paths import lock_path, open_dir, state_dir
from perflab.stacks.backend import (
    PROJECT,
    LabelProblem,
    Labels,
    check_name,
    read,
)
from perflab.stacks.docker.engine import connect, docker_client
from perflab.stacks.service_processes import end, family, labelled, working_in
from perflab.stacks.stack_folders import (
    OWNER,
    folders,
    kept_by,
    log_path,
    remove_folders,
    tail,
)


@dataclass(frozen=True, kw_only=True)
class Found(Labels):
    """One service of this user that carries the lab's labels.

    ``identity`` is the id of a container or process; ``began`` tells a process from a later one (of
    a container: empty).
    """

    backend: str
    identity: str
    state: str
    began: str = ""

    @property
    def is_inside(self) -> bool:
        """Whether the service is under the host lock in force; other runs clean up their own."""
        return self.scope == str(lock_path())


def survey() -> list[Found]:
    """Return the lab's services in both backends, under any host lock."""
    client = docker_client()
    return processes() + (containers(client) if client else [])


def processes() -> list[Found]:
    """Return services that run as processes; children of a service are part of it."""
    ours = labelled()
    services = []
    for pid, labels in ours.items():
        with contextlib.suppress(psutil.Error):
            process, began = psutil.Process(pid), identity(pid)
            facts: dict[str, Any] = {"identity": str(pid), "state": process.status()}
            if process.ppid() not in ours and began:
                services.append(Found(**vars(labels), backend="process", began=began, **facts))
    return services


def containers(client: Any) -> list[Found]:
    """Return services that run as containers of this user, dead ones too."""
    filters = {"label": _of_user()}
    services = []
    for container in client.containers.list(all=True, ignore_removed=True, filters=filters):
        with contextlib.suppress(LabelProblem):
            facts = {"identity": container.id, "state": container.status}
            labels = read(container.labels, "docker")
            services.append(Found(**vars(labels), backend="docker", **facts))
    return services


def _of_user() -> list[str]:
    """Return the labels of all containers and volumes of the lab that this user has."""
    return [f"perflab.project={PROJECT}", f"perflab.uid={os.getuid()}"]


def everything() -> list[Found]:
    """Return every service of the lab under the host lock in force."""
    return [item for item in survey() if item.is_inside]


def remove(services: Iterable[Found]) -> list[Found]:
    """End and remove services, their volumes and their folders; return what was removed."""
    removed = list(services)
    # SIGINT is PostgreSQL's fast shutdown and ends every other service of the lab too. All end at
    # once: the wait for one must not add to the wait for another.
    pids = [pid for item in removed if (pid := alive(item.began)) is not None]
    end(family(*pids), signal.SIGINT, timeout_s=5.0)
    contained = [item for item in removed if item.backend == "docker"]
    client = docker_client() if contained else None
    if client is not None:
        from docker.errors import APIError

        for item in contained:
            with contextlib.suppress(APIError):
                client.containers.get(item.identity).remove(force=True, v=True)
    for stack in {item.stack for item in removed}:
        for name in (stack, kept_by(stack)):
            _remove_leftovers(name, client)
    return removed


def _remove_leftovers(stack: str, client: Any | None) -> None:
    """End the processes that still work in a stack's folders; remove its folders and volumes."""
    check_name(stack, "the stack's name")
    for folder in (state_dir() / "stacks" / stack, open_dir() / "data" / stack):
        end(working_in(folder), signal.SIGINT, timeout_s=1.0)
    remove_folders(stack)
    if client is not None:
        remove_volumes(stack, client)


def remove_volumes(stack: str, client: Any) -> None:
    """Remove the Docker volumes of this user's stack."""
    _remove_labelled(client, f"perflab.stack={stack}")


def _remove_labelled(client: Any, *labels: str) -> None:
    """Remove this user's volumes that have all of the labels, and are in no container."""
    from docker.errors import APIError

    for volume in client.volumes.list(filters={"label": [*_of_user(), *labels]}):
        with contextlib.suppress(APIError):
            volume.remove(force=True)


def remove_of_kind(kind: str | None, stack: str | None = None) -> list[Found]:
    """Remove services by kind (``run``, ``up``; None: all) and by stack (None: all).

    With those of all runs goes what a crash has left without a container: volumes.
    """
    chosen = [item for item in everything() if kind in (None, item.kind)]
    removed = remove(item for item in chosen if stack in (None, item.stack))
    if kind != "up" and stack is None and (client := docker_client()):
        _remove_labelled(client, "perflab.kind=run", f"perflab.scope={lock_path()}")
    return removed


def remove_unmeasured() -> tuple[list[Found], Holder | None]:
    """Remove all services but those of a measurement; return them and the lock's holder.

    This process holds the lock meanwhile, so that a measurement that starts loses no services.
    """
    try:
        with measurement_lock("perflab stack down"):
            return remove_of_kind(None), None
    except HostBusy:
        return remove_of_kind("up"), holder() or UNSEEN


def remove_stack(stack: str) -> None:
    """Remove all that is left of one stack, also when none of its services runs."""
    for name in (stack, kept_by(stack)):
        remove_of_kind("run", name)
        _remove_leftovers(name, docker_client())


def orphaned_folders() -> list[Path]:
    """Return the folders of stacks whose services, and whose maker, have all ended.

    Services of every scope count, and so does a maker that has not started a service yet.
    """
    up = {item.stack for item in survey()}
    return [path for path in folders() if path.name not in up and not _is_made_now(path)]


def _is_made_now(folder: Path) -> bool:
    """Tell whether another process that runs has made a stack's folder."""
    try:
        return alive((folder / OWNER).read_text()) not in (None, os.getpid())
    except (OSError, ValueError):
        return False


def log_of(item: Found, lines: int) -> str:
    """Return the last log lines of a service that is up."""
    if item.backend == "process":
        return tail(log_path(item.stack, item.service), lines)
    container = connect().containers.get(item.identity)
    return str(container.logs(tail=lines).decode(errors="replace"))
