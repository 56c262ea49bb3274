"""Find the lab's services on this machine, and remove those that a crash or a user left behind.

A service's first process may be gone while its children live on, and a child may have a session
of its own and no readable environment (PostgreSQL's do). So the lab finds processes by descent, by
their labels and by the folder they work in, among what runs as this user.

A stack has its logs and records in ``stacks/<stack>`` of the state folder, and its data in
``data/<stack>`` of the open folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from perflab.errors import BackendUnavailable, HostBusy
from perflab.host.files import check_own, is_own, own_folder
from perflab.host.lock import UNSEEN, Holder, holder, measurement_lock
from perflab.host.meters import ProcessTable, ProcessTreeMeter
from perflab.host.processes import alive, identity
from perflab.paths import lock_path, open_dir, state_dir
from perflab.stacks.backend import NAME, PROJECT, LabelProblem, Labels, check_name, read

OWNER = "owner"
# How long an engine may take to answer at all, and then for a piece of work.
ANSWERS_WITHIN_S, WORK_S = 5, 120


def make_stack(stack: str) -> Path:
    """Make a stack's folder of logs, and note in it which process made it."""
    check_name(stack, "the stack's name")
    for folder in (state_dir(), state_dir() / "stacks", state_dir() / "stacks" / stack):
        own_folder(folder)
    owner = folder / OWNER
    if not owner.exists():
        owner.write_text(identity(os.getpid()))
    return folder


def make_data(stack: str, service: str) -> Path:
    """Make the folder of a service's data; other users can enter its parents and not list them."""
    check_name(stack, "the stack's name")
    check_name(service, "the service's name")
    open_to_others()
    for folder in (open_dir() / "data", open_dir() / "data" / stack):
        own_folder(folder, 0o711)
    data = open_dir() / "data" / stack / service
    data.mkdir(mode=0o700, exist_ok=True)
    return data


def open_to_others() -> Path:
    """Make the open folder: root's servers run as another user, who must pass through it."""
    return own_folder(open_dir(), 0o700 if open_dir() == state_dir() else 0o711)


def log_path(stack: str, service: str) -> Path:
    """Return the path of the log of a service that runs as a process."""
    return state_dir() / "stacks" / stack / f"{service}.log"


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        return "".join(deque(file, lines)).rstrip("\n")
    return ""


def record(folder: Path, labels: Labels, pid: int) -> None:
    """Note a server whose environment cannot be read, or has no labels."""
    note = {**labels.as_environment(), "IDENTITY": identity(pid)}
    (folder / f"{labels.service}.{pid}.server").write_text(json.dumps(note))


def recorded() -> Iterator[tuple[int, Labels]]:
    """Yield the process id and labels of every recorded server that still runs."""
    for folder in folders():
        try:
            paths = list(folder.glob("*.server"))
        except FileNotFoundError:
            continue  # Its owner removed it since it was listed.
        for path in paths:
            try:
                note = json.loads(path.read_text())
                pid = alive(note["IDENTITY"])
            except (OSError, ValueError, LookupError):
                continue  # A crash cut the file short.
            if pid is not None:
                yield pid, read(note, "environment")


def folders() -> list[Path]:
    """Return the folders of stacks; links, and names that no stack can have, are left out.

    Raises UnsafePlace where the state folder is not the user's own.
    """
    root = state_dir() / "stacks"
    try:
        check_own(root)
        paths = sorted(root.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if NAME.fullmatch(path.name) and is_own(path)]


def remove_folders(stack: str) -> None:
    """Remove a stack's logs and data.

    Raises LabelProblem where no stack can have the name, and UnsafePlace where the state folder is
    not the user's own.
    """
    check_name(stack, "the stack's name")
    for root in (state_dir() / "stacks", open_dir() / "data"):
        try:
            check_own(root)
        except FileNotFoundError:
            continue
        # rmtree refuses a link of that name.
        shutil.rmtree(root / stack, ignore_errors=True)


POLL_S = 0.02
KILLED_WITHIN_S = 2.0


def members(pids: Iterable[int], lasting: str = "") -> dict[psutil.Process, str]:
    """Return the command lines of those of the processes that match a regular expression."""
    commands = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            command = " ".join(process.cmdline())
            if re.search(lasting, command):
                commands[process] = command
    return commands


def family(*pids: int) -> list[psutil.Process]:
    """Return processes and their descendants, without those that have ended."""
    processes = []
    for pid in ProcessTreeMeter(*pids).members(ProcessTable()):
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    return processes


def working_in(folder: Path) -> list[psutil.Process]:
    """Return the processes that work in ``folder``, which only its owner can enter, or below it."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                processes.append(process)
    return processes


def labelled() -> dict[int, Labels]:
    """Return the labels of every process of the lab, also of recorded servers."""
    return dict(_with_labels()) | dict(recorded())


def of_service(stack: str, service: str) -> list[psutil.Process]:
    """Return the processes of one service of a stack."""
    processes = []
    for pid, labels in labelled().items():
        if (labels.stack, labels.service) == (stack, service):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
    return processes


def _with_labels() -> Iterator[tuple[int, Labels]]:
    user = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, LabelProblem):
            if process.pid == os.getpid() or set(process.uids()) != {user}:
                continue
            environment = process.environ()
            if environment.get("PERFLAB_PROJECT") == PROJECT:
                yield process.pid, read(environment, "environment")


def end(processes: Iterable[psutil.Process], first: int, timeout_s: float) -> list[psutil.Process]:
    """End processes together: signal those without a parent among them, then kill the rest.

    The killed are returned. A process that its parent leaves alone is signalled, too. None is
    waited for as a child: whoever started it can still ask how it ended.
    """
    this_process = psutil.Process().pid
    chosen = {process.pid: process for process in processes if process.pid != this_process}
    for process in chosen.values():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    killed = _asked_to_end(list(chosen.values()), first, timeout_s)
    for process in killed:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _asked_to_end(killed, signal.SIGKILL, KILLED_WITHIN_S)
    return killed


def _asked_to_end(
    processes: Iterable[psutil.Process], number: int, timeout_s: float
) -> list[psutil.Process]:
    """Signal each process that has no living parent among them; return those that do not end."""
    deadline = time.monotonic() + timeout_s
    asked: set[int] = set()
    while True:
        running = {process.pid: process for process in processes if is_alive(process)}
        if not running or time.monotonic() > deadline:
            return list(running.values())
        for pid in running.keys() - asked:
            with contextlib.suppress(psutil.Error):
                if running[pid].ppid() not in running:
                    asked.add(pid)
                    running[pid].send_signal(number)
        time.sleep(POLL_S)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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


def docker_client() -> Any | None:
    """Return a client of this user's Docker engine; None where none answers."""
    try:
        return connect()
    except BackendUnavailable:
        return None


def connect() -> Any:
    """Return a client of this user's Docker engine on this machine.

    It is the engine of ``DOCKER_HOST``, or of the current context of the ``docker`` command.
    BackendUnavailable where none answers within some seconds, or it is not reached by a socket.
    """
    import docker  # Late: this takes half a second.
    from docker.errors import DockerException

    address = ""
    try:
        address = os.environ.get("DOCKER_HOST") or _context_address()
        if address.startswith(("unix://", "/")):
            client = docker.DockerClient(base_url=address, timeout=ANSWERS_WITHIN_S)
            client.ping()
            client.api.timeout = WORK_S
            return client
        why = "it may run on another machine, and the lab measures on this one"
    except (DockerException, OSError) as error:
        why = str(error).splitlines()[0][:160]
    raise BackendUnavailable(
        f"no Docker engine of this machine answers at {address or 'its context'} ({why}); start "
        "it, name its socket (DOCKER_HOST=unix:///...), or use --backend process (parameter "
        "backend='process')"
    )


def _context_address() -> str:
    """Return where the engine of the ``docker`` command's context is."""
    from docker.context import ContextAPI
    from docker.context.config import get_current_context_name

    named = os.environ.get("DOCKER_CONTEXT") or get_current_context_name()
    context = ContextAPI.get_context(named)
    if context is None:
        raise FileNotFoundError(f"there is no docker context '{named}'")
    return str(context.Host)


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
    filters = {"label": [f"perflab.project={PROJECT}", f"perflab.uid={os.getuid()}"]}
    services = []
    for container in client.containers.list(all=True, ignore_removed=True, filters=filters):
        with contextlib.suppress(LabelProblem):
            facts = {"identity": container.id, "state": container.status}
            labels = read(container.labels, "docker")
            services.append(Found(**vars(labels), backend="docker", **facts))
    return services


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
        _remove_leftovers(stack, client)
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
    from docker.errors import APIError

    filters = {"label": [f"perflab.stack={stack}", f"perflab.uid={os.getuid()}"]}
    for volume in client.volumes.list(filters=filters):
        with contextlib.suppress(APIError):
            volume.remove(force=True)


def remove_of_kind(kind: str | None, stack: str | None = None) -> list[Found]:
    """Remove services by kind (``run``, ``up``; None: all) and by stack (None: all)."""
    chosen = [item for item in everything() if kind in (None, item.kind)]
    return remove(item for item in chosen if stack in (None, item.stack))


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
    remove_of_kind("run", stack)
    _remove_leftovers(stack, docker_client())


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
