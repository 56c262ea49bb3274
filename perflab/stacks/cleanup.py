"""The lab's services on this machine, and the end of those that a crash or a user left behind.

They are found by label, among what runs as this user.

The processes of a service: found however they came to be, told apart, and ended together.

A service's first process may be gone while its children live on, and a child may have a session
of its own and no readable environment (PostgreSQL's do). So they are looked for by descent, by
their labels and by the folder they work in.

The folders of stacks: who made each, which servers run as another user, and their removal.

A stack has its logs and records in ``stacks/<stack>`` of the state folder, and its data in
``data/<stack>`` of the open one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import BackendUnavailable, HostBusy
from perflab.host.files import check_own, own_folder
from perflab.host.lock import UNSEEN, Holder, holder, measurement_lock
from perflab.host.processes import alive, identity
from perflab.paths import lock_path, open_dir, state_dir
from perflab.stacks.backend import NAME, PROJECT, LabelProblem, Labels, check_name, read

OWNER = "owner"


def make_stack(stack: str) -> Path:
    """Make a stack's folder of logs, with a word on which process made it."""
    check_name(stack, "the stack's name")
    for folder in (state_dir(), state_dir() / "stacks", state_dir() / "stacks" / stack):
        own_folder(folder)
    owner = folder / OWNER
    if not owner.exists():
        owner.write_text(identity(os.getpid()))
    return folder


def make_data(stack: str, service: str) -> Path:
    """Make the folder of a service's data; another user can pass through to it, not look."""
    check_name(stack, "the stack's name")
    check_name(service, "the service's name")
    open_to_others()
    for folder in (open_dir() / "data", open_dir() / "data" / stack):
        own_folder(folder, 0o711)
    data = open_dir() / "data" / stack / service
    data.mkdir(mode=0o700, exist_ok=True)
    return data


def open_to_others() -> Path:
    """Make the open folder: where root's servers run as another user, that user passes through."""
    return own_folder(open_dir(), 0o700 if open_dir() == state_dir() else 0o711)


def log_path(stack: str, service: str) -> Path:
    """Return where a service of a stack writes its log, as a process."""
    return state_dir() / "stacks" / stack / f"{service}.log"


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def record(folder: Path, labels: Labels, pid: int) -> None:
    """Note a server that runs as another user, and is therefore not found by its environment."""
    noted = {**labels.as_environment(), "IDENTITY": identity(pid)}
    (folder / f"{labels.service}.server").write_text(json.dumps(noted))


def recorded() -> Iterator[tuple[int, Labels]]:
    """Yield every recorded server that is alive, the same process as then."""
    for folder in folders():
        for path in folder.glob("*.server"):
            try:
                noted = json.loads(path.read_text())
                pid = alive(noted["IDENTITY"])
            except (OSError, ValueError, LookupError):
                continue  # cut short by a crash
            if pid is not None:
                yield pid, read(noted, "environment")


def folders() -> list[Path]:
    """Return the folders of stacks: their names can be stacks', and none is a link.

    Raises UnsafePlace where the state folder is not one's own.
    """
    root = state_dir() / "stacks"
    try:
        check_own(root)
        paths = sorted(root.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if NAME.fullmatch(path.name) and _is_own_folder(path)]


def _is_own_folder(path: Path) -> bool:
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()


def maker_of(folder: Path) -> int | None:
    """Return the process that made a stack's folder while it lives, else None."""
    try:
        return alive((folder / OWNER).read_text())
    except (OSError, ValueError):
        return None


def remove_folders(stack: str) -> None:
    """Remove a stack's logs and data.

    Raises LabelProblem where the name cannot be a stack's, and UnsafePlace where the state folder
    is not one's own; nothing was removed then.
    """
    check_name(stack, "the stack's name")
    for root in (state_dir() / "stacks", open_dir() / "data"):
        try:
            check_own(root)
        except FileNotFoundError:
            continue
        # A link of that name is not followed: rmtree refuses it.
        shutil.rmtree(root / stack, ignore_errors=True)


POLL_S = 0.02
KILLED_WITHIN_S = 2.0


@dataclass(frozen=True)
class Member:
    """One process of a service; ``identity`` tells it from a later one of the same number."""

    pid: int
    identity: str
    command: str

    @property
    def is_alive(self) -> bool:
        """Whether it is there, and not merely waiting for its parent to take note of its end."""
        return alive(self.identity) is not None

    def __str__(self) -> str:
        return f"{self.pid} ({self.command[:60].strip()})"


def members(pids: Iterable[int], lasting: str = "") -> tuple[Member, ...]:
    """Return the processes of these numbers whose command line matches a regular expression."""
    matching = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            command = " ".join(psutil.Process(pid).cmdline())
            known = identity(pid)
            if known and re.search(lasting, command):
                matching.append(Member(pid, known, command))
    return tuple(matching)


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, as many as are there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def working_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working folder is a folder of the lab's or lies in it.

    Only its owner can enter a service's folder, so nobody else's process is ever among them.
    """
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            at = Path(process.cwd())
            if at == folder or folder in at.parents:
                processes.append(process)
    return processes


def labelled() -> dict[int, Labels]:
    """Return every process of the lab's by its id.

    Those of one's own carry labels; servers that run as another user are known by their record.
    """
    return dict(_own()) | dict(recorded())


def of_service(stack: str, service: str) -> list[psutil.Process]:
    """Return the processes of one service of a stack."""
    processes = []
    for pid, labels in labelled().items():
        if (labels.stack, labels.service) == (stack, service):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
    return processes


def _own() -> Iterator[tuple[int, Labels]]:
    own = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, LabelProblem):
            if process.pid == os.getpid() or set(process.uids()) != {own}:
                continue
            environment = process.environ()
            if environment.get("PERFLAB_PROJECT") == PROJECT:
                yield process.pid, read(environment, "environment")


def end(processes: Iterable[psutil.Process], first: int, timeout_s: float) -> None:
    """End processes together: ask those that have no parent among them, then kill what is left.

    None is waited for as a child: whoever started it can still ask how it ended, and its number
    is nobody else's until then.
    """
    own = psutil.Process().pid
    chosen = {process.pid: process for process in processes if process.pid != own}
    for process in chosen.values():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    for process in chosen.values():
        with contextlib.suppress(psutil.Error):
            if process.ppid() not in chosen:
                process.send_signal(first)
    for process in _still_there(chosen.values(), timeout_s):
        with contextlib.suppress(psutil.Error):
            process.kill()
    _still_there(chosen.values(), KILLED_WITHIN_S)


def _still_there(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    deadline = time.monotonic() + timeout_s
    while True:
        alive = [process for process in processes if _is_alive(process)]
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(POLL_S)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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
    remove_folders(stack)


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
    idle = [folder for folder in folders() if folder.name not in up]
    return [folder for folder in idle if maker_of(folder) in (None, os.getpid())]


def log_of(item: Found, lines: int) -> str:
    """Return the last log lines of a service that is up."""
    if item.backend == "process":
        return tail(log_path(item.stack, item.service), lines)
    client = docker_client()
    if client is None:
        return ""
    return str(client.containers.get(item.identity).logs(tail=lines).decode(errors="replace"))
