"""Slow work that hears when the user wants to end."""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from perflab.errors import RunInterrupted

Result = TypeVar("Result")
# Returns why the work is to end, or an empty string.
Interrupted = Callable[[], str]
LOOK_EVERY_S = 0.2


def never() -> str:
    """Let work go on to its end."""
    return ""


def go_on(interrupted: Interrupted, during: str) -> None:
    """Return while nobody wants to end.

    Raises
    ------
    RunInterrupted
        Somebody does; the message says during what, and why.
    """
    why = interrupted()
    if why:
        raise RunInterrupted(f"the run was interrupted {during}: {why}")


def patiently(
    work: Callable[[], Result], interrupted: Interrupted, during: str, timeout_s: float = math.inf
) -> Result:
    """Return what a function returns; it is left behind, in a thread, when that is not waited for.

    Raises
    ------
    RunInterrupted
        The user wants to end.
    TimeoutError
        It took longer than it may.
    """
    deadline = time.monotonic() + timeout_s
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            result, error = done.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            go_on(interrupted, during)
            _in_time(deadline, during)
            continue
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def run_command(
    command: Sequence[str],
    interrupted: Interrupted,
    during: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[int, str]:
    """Run a command to its end; return its exit status and all that it printed.

    ``environment`` is added to this process's own: the labels by which clean-up finds the command
    when this process is killed.

    Raises
    ------
    RunInterrupted
        The user wants to end; the command was killed with all that it had started.
    """
    go_on(interrupted, during)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    printed, _ = outcome(child, interrupted, during)
    return child.returncode, printed


def outcome(
    child: subprocess.Popen[str],
    interrupted: Interrupted,
    during: str,
    timeout_s: float = math.inf,
) -> tuple[str, str]:
    """Return what a child, in a session of its own, printed to output and errors until its end.

    Raises
    ------
    RunInterrupted
        The user wants to end; the child was killed with all that it had started.
    TimeoutError
        It took longer than it may; it was killed likewise.
    """
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            try:
                return child.communicate(timeout=LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                go_on(interrupted, during)
                _in_time(deadline, during)
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def _in_time(deadline: float, during: str) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"it took too long {during}")
