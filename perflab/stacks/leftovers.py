"""What a crash left behind, and what a user no longer wants: ended and removed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perflab.errors import HostBusy
from perflab.host.lock import UNSEEN, Holder, holder, measurement_lock
from perflab.host.processes import alive
from perflab.paths import open_dir, state_dir
from perflab.stacks import kin, stack_folders
from perflab.stacks.labels import check_name
from perflab.stacks.process_instance import tail
from perflab.stacks.surveying import Found as Found
from perflab.stacks.surveying import docker_client as docker_client
from perflab.stacks.surveying import survey


def everything() -> list[Found]:
    """Return every service of the lab under the host lock in force."""
    return [item for item in survey() if item.is_inside]


def remove(found: Iterable[Found]) -> list[Found]:
    """End and remove services, their volumes and their folders; return what was removed."""
    removed = list(found)
    client = docker_client() if any(item.backend == "docker" for item in removed) else None
    _end_processes(item for item in removed if item.backend == "process")
    for item in removed:
        if item.backend == "docker" and client is not None:
            _remove_container(client, item.identity)
    for stack in {item.stack for item in removed if item.backend == "process"}:
        _remove_folders(stack)
    for stack in {item.stack for item in removed if item.backend == "docker"}:
        _remove_volumes(stack, client)
    return removed


def _end_processes(found: Iterable[Found]) -> None:
    # SIGINT is PostgreSQL's fast shutdown and ends every other service of the lab too. All at
    # once: what waits for another's end must not cost its time again.
    pids = [pid for item in found if (pid := alive(item.began)) is not None]
    kin.end((each for pid in pids for each in kin.family(pid)), signal.SIGINT, timeout_s=5.0)


def _remove_container(client: Any, identity: str) -> None:
    from docker.errors import APIError, NotFound

    with contextlib.suppress(NotFound, APIError):
        client.containers.get(identity).remove(force=True, v=True)


def _remove_folders(stack: str) -> None:
    """Remove a stack's logs and data, and first whatever still works in them."""
    check_name(stack, "the stack's name")
    for folder in (state_dir() / "stacks" / stack, open_dir() / "data" / stack):
        kin.end(kin.working_in(folder), signal.SIGINT, timeout_s=1.0)
    stack_folders.remove_stack(stack)


def _remove_volumes(stack: str, client: Any | None) -> None:
    from docker.errors import APIError

    if client is None:
        return
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
    makers = {folder: stack_folders.maker_of(folder) for folder in stack_folders.folders()}
    return [
        folder
        for folder, maker in makers.items()
        if folder.name not in up and maker in (None, os.getpid())
    ]


def remove_folder(folder: Path) -> None:
    """Remove a stack's folders of logs and data."""
    stack_folders.remove_stack(folder.name)


def log_of(item: Found, lines: int) -> str:
    """Return the last log lines of a service that is up."""
    if item.backend == "process":
        return tail(state_dir() / "stacks" / item.stack / f"{item.service}.log", lines)
    client = docker_client()
    if client is None:
        return ""
    return str(client.containers.get(item.identity).logs(tail=lines).decode(errors="replace"))
