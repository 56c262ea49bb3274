"""Slow work that hears when the user wants to end."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
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


def patiently(work: Callable[[], Result], interrupted: Interrupted, during: str) -> Result:
    """Return what a function returns; it is left behind, in a thread, when the user wants to end.

    Raises
    ------
    RunInterrupted
        The user wants to end.
    """
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
    try:
        while True:
            try:
                printed, _ = child.communicate(timeout=LOOK_EVERY_S)
                return child.returncode, printed
            except subprocess.TimeoutExpired:
                go_on(interrupted, during)
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
