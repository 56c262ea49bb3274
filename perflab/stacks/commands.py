"""Runs commands and other slow work in such a way that an interrupt ends them."""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from perflab.errors import RunInterrupted
from perflab.host.meters import ProcessTable
from perflab.host.processes import alive, identity

Result = TypeVar("Result")
# Returns why the work is to end, or an empty string. Functions with this parameter may raise
# RunInterrupted.
Interrupted = Callable[[], str]
POLL_EVERY_S = 0.2
# So long the end of what was killed is waited for.
KILLED_WITHIN_S = 2.0


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
    while not wait([future], POLL_EVERY_S).done:
        go_on(interrupted, during)
        if time.monotonic() > deadline:
            raise TimeoutError(f"it took too long {during}")
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

    Raises RunInterrupted where the user interrupts, and TimeoutError after ``timeout_s``; the
    command and its children are killed first.
    """
    go_on(interrupted, during)
    deadline = time.monotonic() + timeout_s
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=True,
        bufsize=0,
    )
    texts = (bytearray(), bytearray())
    with child, selectors.DefaultSelector() as pipes:
        for pipe, text in zip((child.stdout, child.stderr), texts, strict=True):
            assert pipe is not None
            pipes.register(pipe, selectors.EVENT_READ, text)
        has_ended = arrived = False
        try:
            # A server that the command leaves behind keeps its pipes open: they need not end.
            while arrived or not has_ended:
                go_on(interrupted, during)
                if time.monotonic() > deadline:
                    raise TimeoutError(f"it took too long {during}")
                has_ended = child.poll() is not None
                arrived = _read(pipes, 0.0 if has_ended else POLL_EVERY_S)
        finally:
            if child.returncode is None:
                _kill(child)
    output, problems = (text.decode(errors="replace") for text in texts)
    return subprocess.CompletedProcess(command, child.returncode, output, problems)


def _read(pipes: selectors.BaseSelector, within_s: float) -> bool:
    """Add what comes through pipes to their texts; return whether anything did."""
    ready = pipes.select(within_s)
    for key, _ in ready:
        arrived = os.read(key.fd, 1 << 16)
        key.data.extend(arrived)
        if not arrived:
            pipes.unregister(key.fileobj)
    return bool(ready)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a command and its children, and wait for their end: their files may be removed next."""
    marks = list(map(identity, ProcessTable().tree(child.pid)))
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + KILLED_WITHIN_S
    while any(map(alive, marks)) and time.monotonic() < deadline:
        time.sleep(0.01)
