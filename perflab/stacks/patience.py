"""Slow work that hears when the user wants to end."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TypeVar

from perflab.errors import RunInterrupted

Result = TypeVar("Result")
# Returns why the work is to end, or an empty string. Who takes one may raise RunInterrupted.
Interrupted = Callable[[], str]
LOOK_EVERY_S = 0.2


def never() -> str:
    """Let work go on to its end."""
    return ""


def go_on(interrupted: Interrupted, during: str) -> None:
    """Return while nobody wants to end; else raise RunInterrupted, with what was done, and why."""
    why = interrupted()
    if why:
        raise RunInterrupted(f"the run was interrupted {during}: {why}")


def patiently(
    work: Callable[[], Result], interrupted: Interrupted, during: str, timeout_s: float = math.inf
) -> Result:
    """Return what a function returns; it is left behind, in a thread, when that is not waited for.

    Raises RunInterrupted where the user wants to end, and TimeoutError where it takes too long.
    """
    deadline = time.monotonic() + timeout_s
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    # Not of a pool: Python waits for the threads of pools when it ends.
    threading.Thread(target=run, daemon=True).start()
    while not wait([done], LOOK_EVERY_S).done:
        _look(interrupted, during, deadline)
    return done.result()


def run_command(
    command: Sequence[str],
    interrupted: Interrupted,
    during: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    timeout_s: float = math.inf,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a session of its own; return its exit status and what it printed.

    ``environment`` is all of its environment. It holds the labels by which clean-up finds the
    command when this process is killed. Raises RunInterrupted where the user wants to end, and
    TimeoutError where it takes too long; the command was killed then, with all that it had started.
    """
    go_on(interrupted, during)
    deadline = time.monotonic() + timeout_s
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    try:
        while True:
            try:
                printed, problems = child.communicate(timeout=LOOK_EVERY_S)
                return subprocess.CompletedProcess(command, child.returncode, printed, problems)
            except subprocess.TimeoutExpired:
                _look(interrupted, during, deadline)
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def _look(interrupted: Interrupted, during: str, deadline: float) -> None:
    go_on(interrupted, during)
    if time.monotonic() > deadline:
        raise TimeoutError(f"it took too long {during}")
