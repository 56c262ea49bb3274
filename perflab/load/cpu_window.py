"""The CPU time that a load's own process takes while it measures, whole or in windows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from perflab.load.timer import Timer
from perflab.load.workload import Burst, ClosedLoop, OpenLoop


class CpuWindow:
    """This process's CPU time over the measure stage, from its first to its last start.

    Where all start ``at_once`` nothing lies between these two: it is then taken to the end.
    """

    def __init__(self, at_once: bool = False) -> None:
        self._at_once = at_once
        self.began = False
        self.used_ns = 0
        self._ended = False
        self._began_ns = 0

    def begin(self) -> None:
        """The first measured request is due."""
        self.began = True
        self._began_ns = time.process_time_ns()

    def end(self) -> None:
        """The last measured request is due; only the first call counts."""
        if not self._at_once:
            self.finish()

    def finish(self) -> None:
        """The load is over."""
        if self.began and not self._ended:
            self._ended = True
            self.used_ns = time.process_time_ns() - self._began_ns


def is_at_once(arrivals: OpenLoop | Burst | ClosedLoop) -> bool:
    """Return whether every measured request is planned for one and the same instant."""
    if isinstance(arrivals, Burst):
        return True
    if isinstance(arrivals, OpenLoop) or not 0 < arrivals.requests <= arrivals.users:
        return False
    return not (arrivals.warmup_requests or arrivals.warmup_s or arrivals.ramp_s)


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
