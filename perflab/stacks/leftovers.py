"""What a crash left behind, found by label and removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from perflab.paths import lock_path, state_dir
from perflab.stacks import kin
from perflab.stacks.labels import PROJECT
from perflab.stacks.process_backend import tail


@dataclass(frozen=True)
class Found:
    """One service that carries the lab's labels."""

    stack: str
    service: str
    kind: str
    backend: str
    identity: str
    port: int
    state: str
    log: str = ""


def _labelled_processes() -> dict[int, dict[str, str]]:
    """Return the labels of every root process of ours that is alive (children inherit them)."""
    labelled: dict[int, dict[str, str]] = {}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get("PERFLAB_PROJECT") == PROJECT and "PERFLAB_SERVICE" in environment:
                labelled[process.pid] = environment
    roots = {}
    for pid, environment in labelled.items():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.ppid() not in labelled and process.status() != psutil.STATUS_ZOMBIE:
                roots[pid] = environment
    return roots


def processes(scope: str | None = None) -> list[Found]:
    """Return the services that run as processes; ``scope`` is the host lock they belong to."""
    scope = scope or str(lock_path())
    return [
        Found(
            labels.get("PERFLAB_STACK", ""),
            labels["PERFLAB_SERVICE"],
            labels.get("PERFLAB_KIND", ""),
            "process",
            str(pid),
            int(labels.get("PERFLAB_PORT", "0")),
            psutil.Process(pid).status(),
            labels.get("PERFLAB_LOG", ""),
        )
        for pid, labels in _labelled_processes().items()
        if labels.get("PERFLAB_SCOPE") == scope
    ]


def containers(client: Any, scope: str | None = None) -> list[Found]:
    """Return the services that run as containers, dead ones too."""
    scope = scope or str(lock_path())
    wanted = {"label": [f"perflab.project={PROJECT}", f"perflab.scope={scope}"]}
    return [
        Found(
            container.labels.get("perflab.stack", ""),
            container.labels.get("perflab.service", ""),
            container.labels.get("perflab.kind", ""),
            "docker",
            container.id,
            int(container.labels.get("perflab.port", "0")),
            container.status,
        )
        for container in client.containers.list(all=True, filters=wanted, ignore_removed=True)
    ]


def docker_client() -> Any | None:
    """Return a Docker client when an engine answers, else None."""
    from perflab.errors import BackendUnavailable
    from perflab.stacks.docker_backend import connect

    try:
        return connect()
    except BackendUnavailable:
        return None


def everything(scope: str | None = None) -> list[Found]:
    """Return every service of the lab on this machine, in both backends."""
    client = docker_client()
    return processes(scope) + (containers(client, scope) if client else [])


def remove(found: Iterable[Found]) -> list[Found]:
    """End and remove services, their volumes and their folders; return what was removed."""
    removed = list(found)
    client = docker_client() if any(item.backend == "docker" for item in removed) else None
    _end_processes(int(item.identity) for item in removed if item.backend == "process")
    for item in removed:
        if item.backend == "docker" and client is not None:
            _remove_container(client, item.identity)
    for stack in {item.stack for item in removed if item.stack}:
        _remove_stack_files(stack, client)
    return removed


def _end_processes(pids: Iterable[int]) -> None:
    # SIGINT is PostgreSQL's fast shutdown and ends every other service of the lab too. All at
    # once: what waits for another's end must not cost its time again.
    kin.end((item for pid in pids for item in kin.family(pid)), signal.SIGINT, timeout_s=5.0)


def _remove_container(client: Any, identity: str) -> None:
    from docker.errors import APIError, NotFound

    with contextlib.suppress(NotFound, APIError):
        client.containers.get(identity).remove(force=True, v=True)


def _remove_stack_files(stack: str, client: Any | None) -> None:
    folder = state_dir() / "stacks" / stack
    kin.end(kin.working_in(folder), signal.SIGINT, timeout_s=1.0)
    shutil.rmtree(folder, ignore_errors=True)
    if client is None:
        return
    from docker.errors import APIError

    for volume in client.volumes.list(filters={"label": f"perflab.stack={stack}"}):
        with contextlib.suppress(APIError):
            volume.remove(force=True)


def remove_of_kind(kind: str | None, stack: str | None = None) -> list[Found]:
    """Remove services by kind (``run``, ``up``; None for all) and, if given, by stack."""
    return remove(
        item
        for item in everything()
        if (kind is None or item.kind == kind) and (stack is None or item.stack == stack)
    )


def remove_stack(stack: str) -> None:
    """Remove all that is left of one stack, also when none of its services is."""
    remove_of_kind("run", stack)
    _remove_stack_files(stack, docker_client())


def orphaned_folders() -> list[Path]:
    """Return the folders of stacks of which no service is left."""
    alive = {item.stack for item in everything()}
    root = state_dir() / "stacks"
    return [path for path in root.glob("*") if path.name not in alive] if root.exists() else []


def remove_folder(folder: Path) -> None:
    """Remove a stack's folder of logs and data."""
    shutil.rmtree(folder, ignore_errors=True)


def log_of(item: Found, lines: int) -> str:
    """Return the last log lines of a service that is up."""
    if item.backend == "process":
        return tail(Path(item.log), lines)
    client = docker_client()
    if client is None:
        return ""
    return str(client.containers.get(item.identity).logs(tail=lines).decode(errors="replace"))
