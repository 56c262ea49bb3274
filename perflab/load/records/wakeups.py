"""The wakeups at a worker's event loop, as ticks of a grid.

A loop that stands still misses ticks. Each missed tick counts, with its own lateness: a stall of
150 ms is one late wake-up of 150 ms and 29 more ticks that were late by 145, 140 ms and so on.
Counting wake-ups alone would be coordinated omission, inside the check against it (G. Tene, "How
not to measure latency", 2013).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perflab.load.records.loop_probe import TICK_MS, TICK_NS
from perflab.load.workload.windows import overlapping, time_within


@dataclass(frozen=True)
class Wakeups:
    """The wakeups of a probe: when the loop woke (int64, ns), and how late it was then (ms)."""

    woken_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    late_ms: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, rows: np.ndarray) -> Wakeups:
        """Read a probe's rows (``loop_probe.WAKEUP``)."""
        return cls(np.array(rows["woken_ns"]), np.array(rows["late_ms"]))

    @cached_property
    def ticks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return due instant (ns) and lateness (ms) of every tick, missed ones included."""
        counts = (self.late_ms // TICK_MS).astype(np.int64).clip(0) + 1
        first = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - np.repeat(first, counts)
        late_ms = np.repeat(self.late_ms, counts) - place * TICK_MS
        return np.repeat(self.woken_ns, counts) - np.rint(late_ms * 1e6).astype(np.int64), late_ms

    def within(self, spans: np.ndarray) -> Wakeups:
        """Return the wakeups whose delay overlaps one of the spans (begins and ends, ns)."""
        due_ns = self.woken_ns - np.rint(self.late_ms * 1e6).astype(np.int64)
        chosen = overlapping(due_ns, self.woken_ns, spans)
        return Wakeups(self.woken_ns[chosen], self.late_ms[chosen])

    @property
    def is_stall(self) -> np.ndarray:
        """Return which wakeups missed at least one tick besides their own.

        Ticks catch a shorter delay only by chance: such delays are judged as a sample, and not
        request by request.
        """
        return self.late_ms >= TICK_MS

    @cached_property
    def stalls(self) -> np.ndarray:
        """Return when the loop stood still: begin and end in ns, shape (stalls, 2), in order.

        A stall began at some instant after the last tick at which the loop was awake. It is taken
        to be as long as it can have been: at most one tick too long.
        """
        woken_ns, late = self.woken_ns.astype(np.int64), self.is_stall
        earliest = woken_ns - np.rint(self.late_ms * 1e6).astype(np.int64) - TICK_NS
        awake = np.concatenate([earliest[:1], woken_ns[:-1]])
        begin = np.maximum(earliest, awake)
        return np.stack([begin[late], woken_ns[late]], axis=1)

    def stood_still_ns(self, since_ns: np.ndarray, until_ns: np.ndarray) -> np.ndarray:
        """Return how long the loop stood still between each two instants, in ns."""
        return time_within(since_ns, until_ns, self.stalls)
