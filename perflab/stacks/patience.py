"""Slow work that ends early when the user wants to end the run."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from perflab.errors import RunInterrupted

Result = TypeVar("Result")
# Returns why the work is to end, or an empty string. Functions with this parameter may raise
# RunInterrupted.
Interrupted = Callable[[], str]
LOOK_EVERY_S = 0.2


def never() -> str:
    """Return an empty string: the work goes on to its end."""
    return ""


def go_on(interrupted: Interrupted, during: str) -> None:
    """Raise RunInterrupted, with ``during`` and the reason, where the work is to end."""
    reason = interrupted()
    if reason:
        raise RunInterrupted(f"the run was interrupted {during}: {reason}")


@dataclass(frozen=True)
class Work:
    """Slow work: who hears of its steps, what interrupts it, and the labels of its processes.

    ``labels`` are variables of the environment, by which clean-up finds the processes.
    """

    tell: Callable[[str], None] = lambda _: None
    interrupted: Interrupted = never
    labels: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        command: Sequence[str],
        during: str,
        variables: Mapping[str, str],
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as :func:`run_command` does, with ``variables`` over this environment."""
        environment = {**os.environ, **variables, **self.labels}
        return run_command(command, self.interrupted, during, environment, folder)


NO_WORK = Work()


def patiently(
    work: Callable[[], Result], interrupted: Interrupted, during: str, timeout_s: float = math.inf
) -> Result:
    """Run ``work`` in a thread and return its result.

    Raises RunInterrupted where the user wants to end, and TimeoutError where the work takes too
    long; the thread is then left to itself.
    """
    deadline = time.monotonic() + timeout_s
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # This is no thread of a pool: Python waits for those when it ends.
    threading.Thread(target=run, daemon=True).start()
    while not wait([future], LOOK_EVERY_S).done:
        _check(interrupted, during, deadline)
    return future.result()


def run_command(
    command: Sequence[str],
    interrupted: Interrupted,
    during: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    timeout_s: float = math.inf,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a session and environment of its own; return its exit status and output.

    Raises RunInterrupted where the user wants to end, and TimeoutError where the command takes too
    long; the command's session was killed then.
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
                output, problems = child.communicate(timeout=LOOK_EVERY_S)
                return subprocess.CompletedProcess(command, child.returncode, output, problems)
            except subprocess.TimeoutExpired:
                _check(interrupted, during, deadline)
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def _check(interrupted: Interrupted, during: str, deadline: float) -> None:
    go_on(interrupted, during)
    if time.monotonic() > deadline:
        raise TimeoutError(f"it took too long {during}")
