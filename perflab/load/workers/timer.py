"""A timer finer than the event loop's, which rounds to about a millisecond.

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
from collections.abc import Callable

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
