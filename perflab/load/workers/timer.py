"""A timer finer than the event loop's, which rounds to about a millisecond; and CPU times.

A timerfd (Linux, absolute, CLOCK_MONOTONIC) wakes the loop as a readable file; a heap holds the
calls. ``os.timerfd_create`` exists from Python 3.13 on, so the C library is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import heapq
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from perflab.load.workload.arrivals import Burst, ClosedLoop, OpenLoop

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
BILLION = 1_000_000_000


class Timer:
    """Calls functions at instants of CLOCK_MONOTONIC, in nanoseconds; never early."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._fd: int = library.timerfd_create(CLOCK_MONOTONIC, FLAGS)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._settime = library.timerfd_settime
        # An itimerspec: seconds and nanoseconds of the interval, then those of the value.
        self._spec = (ctypes.c_long * 4)()
        self._pointer = ctypes.byref(self._spec)
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._armed_ns = 0
        self._count = 0
        self._loop = loop
        loop.add_reader(self._fd, self._fire)

    def at(self, instant_ns: int, call: Callable[[], object]) -> None:
        """Call a function at an instant; at once if the instant has passed."""
        self._count += 1
        heapq.heappush(self._due, (instant_ns, self._count, call))
        if not self._armed_ns or instant_ns < self._armed_ns:
            self._arm(instant_ns)

    def close(self) -> None:
        """Drop all calls."""
        self._due.clear()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _arm(self, instant_ns: int) -> None:
        self._armed_ns = instant_ns
        # A value of 0 would disarm it; an instant in the past fires at once.
        self._spec[2], self._spec[3] = divmod(max(instant_ns, 1), BILLION)
        self._settime(self._fd, TFD_TIMER_ABSTIME, self._pointer, None)

    def _fire(self) -> None:
        due = self._due
        # Calls that fall due meanwhile wait for the next turn of the loop, or reads would starve.
        now_ns = time.monotonic_ns()
        while due and due[0][0] <= now_ns:
            heapq.heappop(due)[2]()
            if self._fd < 0:
                return
        if due:
            self._arm(due[0][0])
            return
        self._armed_ns = 0
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)


class CpuWindow:
    """This process's CPU time over the measure stage, from its first to its last start.

    Where all start ``at_once``, these two coincide: the window then lasts to the end of the load.
    """

    def __init__(self, at_once: bool = False) -> None:
        self._at_once = at_once
        self.began = False
        self.used_ns = 0
        self._ended = False
        self._began_ns = 0

    def begin(self) -> None:
        """Begin with the first measured request."""
        self.began = True
        self._began_ns = time.process_time_ns()

    def end(self) -> None:
        """End with the last measured request; only the first call counts."""
        if not self._at_once:
            self.finish()

    def finish(self) -> None:
        """End with the load, if not before."""
        if self.began and not self._ended:
            self._ended = True
            self.used_ns = time.process_time_ns() - self._began_ns


def is_at_once(arrivals: OpenLoop | Burst | ClosedLoop) -> bool:
    """Return whether every measured request is planned for the same instant."""
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
    """A worker's CPU time, and its waits for a core, in the counted parts of its load's windows.

    Over the whole load both would be diluted by the times between windows. ``delayed_ns`` is the
    wait, ``wall_ns`` the length of the counted parts.
    """

    def __init__(self) -> None:
        super().__init__()
        # Windows begin and end the measurement, not the first and the last request.
        self.began = True
        self.delayed_ns = self.wall_ns = 0
        self._since: tuple[int, int, int] | None = None

    def read_within(self, counted: Sequence[tuple[int, int]], timer: Timer) -> None:
        """Measure CPU in every counted part of a window, (begin, end) in ns, that has a length."""
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
            used, delayed, wall = (
                now - then for now, then in zip(_now(), self._since, strict=True)
            )
            self.used_ns += used
            self.delayed_ns += delayed
            self.wall_ns += wall
            self._since = None

    def finish(self) -> None:
        """End with the load, if not before."""
        self._ended = True
        self._add()


def _now() -> tuple[int, int, int]:
    return time.process_time_ns(), run_delay_ns(), time.monotonic_ns()
