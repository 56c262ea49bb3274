"""This process's CPU time, and its wait for a core, over the counted parts of windows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from perflab.load.cpu_window import CpuWindow
from perflab.load.timer import Timer


def run_delay_ns() -> int:
    """Return how long this process's main thread was ready to run but had no core.

    Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat; 0 where the
    kernel does not say.
    """
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


class CpuInWindows(CpuWindow):
    """What a worker used, and waited for its core, in the counted parts of its load's windows.

    Over the whole load either would be thinned by the times in which there is nothing to do.
    ``delayed_ns`` is the wait, ``wall_ns`` the time over which both were taken.
    """

    def __init__(self) -> None:
        super().__init__()
        # The windows begin and end it, not the first and the last request.
        self.began = True
        self.delayed_ns = self.wall_ns = 0
        self._since: tuple[int, int, int] | None = None

    def keep(self, counted: Sequence[tuple[int, int]], timer: Timer) -> None:
        """Take the time of every counted part, as (begin, end) in ns, that has a length."""
        self._left = [part for part in counted if part[0] < part[1]][::-1]
        self._timer = timer
        self._wait()

    def _wait(self) -> None:
        if self._left and not self._ended:
            self._timer.at(self._left[-1][0], self._open)

    def _open(self) -> None:
        if not self._ended:
            self._since = _now()
            self._timer.at(self._left.pop()[1], self._close)

    def _close(self) -> None:
        self._add()
        self._wait()

    def _add(self) -> None:
        if self._since is not None:
            used, delayed, at = (now - then for now, then in zip(_now(), self._since, strict=True))
            self.used_ns += used
            self.delayed_ns += delayed
            self.wall_ns += at
            self._since = None

    def finish(self) -> None:
        """The load is over."""
        self._ended = True
        self._add()


def _now() -> tuple[int, int, int]:
    return time.process_time_ns(), run_delay_ns(), time.monotonic_ns()
