"""One absolute timer of the kernel, through ctypes (Python has it from 3.13 on)."""

from __future__ import annotations

import contextlib
import ctypes
import os

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
TFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
NS_PER_S = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Timer:
    """A timerfd on CLOCK_MONOTONIC: event-loop timers round to a millisecond, this does not.

    ``descriptor`` becomes readable when it fires. Source: timerfd_create(2).
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._spec = _Itimerspec()
        self.descriptor: int = self._libc.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def set(self, due_ns: int) -> None:
        """Fire at an instant; one that has passed fires at once (0 would disarm the timer)."""
        value = self._spec.value
        value.seconds, value.nanoseconds = divmod(max(1, due_ns), NS_PER_S)
        failed = self._libc.timerfd_settime(
            self.descriptor, TFD_TIMER_ABSTIME, ctypes.byref(self._spec), None
        )
        if failed:
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def acknowledge(self) -> None:
        """Take note of a firing, so that the descriptor is not readable any more."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 8)
