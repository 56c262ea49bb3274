"""Wakeups at a worker's event loop and CPU while the load runs, as rows for spools."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable

import numpy as np

TICK_NS = 5_000_000
TICK_MS = TICK_NS / 1e6
WAKEUP = np.dtype([("woken_ns", "<i8"), ("late_ms", "<f8")])
CPU = np.dtype([("at_ns", "<i8"), ("used_ns", "<i8"), ("delayed_ns", "<i8")])
pack_wakeup, pack_cpu = struct.Struct("<qd").pack, struct.Struct("<3q").pack
WAKEUPS_FILE, CPU_FILE = "wakeups.rows", "cpu.rows"
Add = Callable[[bytes], object]


class LoopProbe:
    """Notes how late the event loop is at ticks of an absolute grid.

    A wake-up is one row (``WAKEUP``) for ``add``, however many ticks were missed before it: a
    process that is stopped for hours keeps 16 bytes. The ticks are computed from the wakeups
    afterwards.
    """

    def __init__(self, began_ns: int, add: Add) -> None:
        self.began_ns = began_ns
        self.due_ns = began_ns + TICK_NS
        self._add = add

    def woke(self, now_ns: int) -> None:
        """Note a wake-up, and set the next tick that is still to come."""
        late_ns = now_ns - self.due_ns
        self._add(pack_wakeup(now_ns, late_ns / 1e6))
        self.due_ns += TICK_NS * (late_ns // TICK_NS + 1)

    def end(self, now_ns: int) -> None:
        """Note a tick that is overdue when the load ends: no wake-up will come for it."""
        if now_ns >= self.due_ns:
            self.woke(now_ns)


class CpuLog:
    """Notes this process's CPU time, and how long its main thread waited for a core.

    Each note is a row (``CPU``) for ``add``. Source of the wait: Linux,
    Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat; 0 where the kernel does not say.
    """

    def __init__(self, add: Add) -> None:
        self._add = add
        try:
            self._schedstat = os.open("/proc/self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = -1

    def note(self) -> None:
        """Note both times now."""
        words = os.pread(self._schedstat, 64, 0).split() if self._schedstat >= 0 else []
        delayed_ns = int(words[1]) if len(words) > 1 else 0
        self._add(pack_cpu(time.monotonic_ns(), time.process_time_ns(), delayed_ns))

    def end(self) -> None:
        """Note both times for the last time."""
        self.note()
        if self._schedstat >= 0:
            os.close(self._schedstat)


def grown_ns(notes: np.ndarray, name: str, spans: np.ndarray) -> float:
    """Return how much a noted time grew within spans (begins and ends, ns)."""
    begin, end = np.interp(spans, notes["at_ns"], notes[name]).T
    return float(np.maximum(end - begin, 0).sum())
