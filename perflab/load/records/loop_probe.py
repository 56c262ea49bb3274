"""Wakeups at a worker's event loop and CPU while the load runs."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

TICK_NS = 5_000_000
TICK_MS = TICK_NS / 1e6


class LoopProbe:
    """Notes how late the event loop is at ticks of an absolute grid.

    A wake-up is one entry, however many ticks were missed before it: a process that is stopped for
    hours keeps 16 bytes. The ticks are computed from the wakeups afterwards.
    """

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.due_ns = began_ns + TICK_NS
        self._woken_us = array("Q")
        self._late_ms = array("d")

    def woke(self, now_ns: int) -> None:
        """Note a wake-up, and set the next tick that is still to come."""
        late_ns = now_ns - self.due_ns
        self._woken_us.append((now_ns - self.began_ns) // 1000)
        self._late_ms.append(late_ns / 1e6)
        self.due_ns += TICK_NS * (late_ns // TICK_NS + 1)

    def end(self, now_ns: int) -> None:
        """Note a tick that is overdue when the load ends: no wake-up will come for it."""
        if now_ns >= self.due_ns:
            self.woke(now_ns)

    def report(self) -> dict[str, Any]:
        """Return the wakeups, for :meth:`Wakeups.of`."""
        return {
            "began_ns": self.began_ns,
            "woken_us": self._woken_us.tolist(),
            "late_ms": self._late_ms.tolist(),
        }


class CpuLog:
    """Notes this process's CPU time, and how long its main thread waited for a core.

    Source of the latter: Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat; 0
    where the kernel does not say.
    """

    def __init__(self) -> None:
        self._at_ns, self._used_ns, self._delayed_ns = array("q"), array("q"), array("q")
        try:
            self._schedstat = os.open("/proc/self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = -1

    def note(self) -> None:
        """Note both times now."""
        self._at_ns.append(time.monotonic_ns())
        self._used_ns.append(time.process_time_ns())
        words = os.pread(self._schedstat, 64, 0).split() if self._schedstat >= 0 else []
        self._delayed_ns.append(int(words[1]) if len(words) > 1 else 0)

    def report(self) -> dict[str, list[int]]:
        """End, and return the notes, for :func:`grown_ns`."""
        if self._schedstat >= 0:
            os.close(self._schedstat)
        return {
            "at_ns": self._at_ns.tolist(),
            "used_ns": self._used_ns.tolist(),
            "delayed_ns": self._delayed_ns.tolist(),
        }


def grown_ns(report: Mapping[str, Sequence[int]], name: str, spans: np.ndarray) -> float:
    """Return how much a noted time grew within spans (begins and ends, ns)."""
    begin, end = np.interp(spans, report["at_ns"], report[name]).T
    return float(np.maximum(end - begin, 0).sum())
