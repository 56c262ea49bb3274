"""The processes of services: who they are, and how they end.

A service's first process may be gone while its children live on, and a child may have a session
of its own and no readable environment (PostgreSQL's do). So the lab finds processes by descent, by
their labels and by the folder they work in, among what runs as this user.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from perflab.host.meters import ProcessTable, ProcessTreeMeter
from perflab.stacks.backend import (
    HASTY_TIMEOUT_S,
    PROJECT,
    LabelProblem,
    Labels,
    read,
)
from perflab.stacks.commands import Interrupted, never
from perflab.stacks.stack_folders import recorded

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


def end(
    processes: Iterable[psutil.Process],
    first: int,
    timeout_s: float,
    interrupted: Interrupted = never,
) -> list[psutil.Process]:
    """End processes together: signal those without a parent among them, then kill the rest.

    The killed are returned. A process that its parent leaves alone is signalled, too. None is
    waited for as a child: whoever started it can still ask how it ended. Once the user has
    interrupted, they have 2 s at most.
    """
    this_process = psutil.Process().pid
    chosen = {process.pid: process for process in processes if process.pid != this_process}
    for process in chosen.values():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    killed = _asked_to_end(list(chosen.values()), first, timeout_s, interrupted)
    for process in killed:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _asked_to_end(killed, signal.SIGKILL, KILLED_WITHIN_S)
    return killed


def _asked_to_end(
    processes: Iterable[psutil.Process],
    number: int,
    timeout_s: float,
    interrupted: Interrupted = never,
) -> list[psutil.Process]:
    """Signal each process that has no living parent among them; return those that do not end."""
    began = time.monotonic()
    asked: set[int] = set()
    while True:
        running = {process.pid: process for process in processes if is_alive(process)}
        within_s = min(timeout_s, HASTY_TIMEOUT_S) if interrupted() else timeout_s
        if not running or time.monotonic() > began + within_s:
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
