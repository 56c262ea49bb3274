"""A sampling profiler beside a load: a process that looks at a service's call chains from outside.

The service runs unchanged; for each look it is stopped for a moment. What that costs is measured
by the experiment ``profile``, not assumed.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self

import pandas as pd

from perflab.errors import ProfilerFailed

ATTACH_TIMEOUT_S = 15.0
END_TIMEOUT_S = 20.0
LOOK_EVERY_S = 0.02


class Profiler(ABC):
    """A profiler attached to a service, from entering this context to leaving it.

    Parameters
    ----------
    pids : sequence of int
        The service's processes by their numbers on this host (also of a container), its first one
        first.
    rate_hz : int
        Looks per second.
    bound_s : float
        The profiler ends itself after so long, whatever becomes of us.
    environment : mapping
        Labels, so that clean-up finds it.

    Attributes
    ----------
    looks : int
        How often it was due to look, whether it found a thread running or not: its rate times the
        time it was attached (profilers count only what they found); after :meth:`collect`.
    warnings : tuple of str
        What makes its call chains less than whole; after :meth:`collect`.

    Raises
    ------
    ProfilerFailed
        On entering: it is missing, may not look at the process, or cannot read it.
    """

    tool: ClassVar[str]

    def __init__(
        self,
        pids: Sequence[int],
        rate_hz: int,
        bound_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._pids = pids
        self._rate_hz = rate_hz
        self._bound_s = math.ceil(bound_s)
        self._environment = dict(environment or {})
        self.looks = 0
        self.warnings: tuple[str, ...] = ()

    @property
    def pid(self) -> int:
        """Return the profiler's own process id."""
        return self._child.pid

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="perflab-profile-"))
        try:
            with (self._folder / "log").open("wb") as log:
                self._child = self._begin(log)
            self._wait_attached()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _begin(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **self._environment},
        )

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command that looks at the service until SIGINT, or until the bound."""

    @abstractmethod
    def _is_attached(self) -> bool:
        """Tell whether it looks at the service by now."""

    @abstractmethod
    def _refusal(self, said: str) -> ProfilerFailed:
        """Return the error for what it said before it gave up, with the way out where known."""

    @abstractmethod
    def _call_chains(self, said: str) -> pd.DataFrame:
        """Return what it has seen once it has ended (chain, samples), and set the warnings."""

    def _wait_attached(self) -> None:
        deadline = time.monotonic() + ATTACH_TIMEOUT_S
        while not self._is_attached():
            if self._child.poll() is not None:
                raise self._refusal(self._said())
            if time.monotonic() > deadline:
                raise ProfilerFailed(
                    f"{self.tool} did not begin within {ATTACH_TIMEOUT_S:g} s: {self._said()}"
                )
            time.sleep(LOOK_EVERY_S)
        self._attached_at = time.monotonic()

    def collect(self) -> pd.DataFrame:
        """End the profiler in order and return its call chains (chain, samples).

        Raises
        ------
        ProfilerFailed
            It did not end in time, or left no call chains.
        """
        attached_s = min(time.monotonic() - self._attached_at, self._bound_s)
        self.looks = round(self._rate_hz * attached_s)
        self._child.send_signal(signal.SIGINT)
        try:
            self._child.wait(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(f"{self.tool} did not end within {END_TIMEOUT_S:g} s") from None
        return self._call_chains(self._said())

    def _said(self) -> str:
        return (self._folder / "log").read_text(errors="replace").strip()

    def _end(self) -> None:
        child = getattr(self, "_child", None)
        if child is not None and child.poll() is None:
            # A tracer that is killed leaves its process running: the kernel detaches it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
