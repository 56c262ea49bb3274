"""The processes of a service: found however they came to be, told apart, and ended together.

A service's first process may be gone while its children live on, and a child may have a session
of its own and no readable environment (PostgreSQL's do). So they are looked for by descent, by
their labels and by the folder they work in.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from perflab.host.processes import alive, identity
from perflab.stacks import stack_folders
from perflab.stacks.labels import PROJECT, LabelProblem, Labels, read

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
    return dict(_own()) | dict(stack_folders.recorded())


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
