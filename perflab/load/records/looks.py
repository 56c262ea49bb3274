"""Looks at a worker's event loop and CPU, on a grid of ticks; and a load's stop by its failures.

A loop that stands still misses ticks. Each missed tick counts, with its own lateness: a stall of
150 ms is one late wake-up of 150 ms and 29 more ticks that were late by 145, 140 ms and so on.
Counting wake-ups alone would be coordinated omission, inside the check against it (G. Tene, "How
not to measure latency", 2013).

The instant of the stop is that of the failure which completed the number, over the rows of all
workers: they share a clock, so no message between them decides what came before it. Requests that
ended later, because they were under way or because their worker did not know yet, have a stage of
their own: their server had already failed.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perflab.load.clients.outcome import AFTER_STOP, CUT_OFF_CODES, MEASURE, WARMUP
from perflab.load.records.columns import REQUESTS, ROW
from perflab.load.workload.windows import overlapping, time_within

TICK_NS = 5_000_000
TICK_MS = TICK_NS / 1e6


class LoopProbe:
    """Notes how late the event loop is at ticks of an absolute grid.

    A wake-up is one look, however many ticks were missed before it: a process that is stopped for
    hours keeps 16 bytes. The ticks are computed from the looks afterwards.
    """

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.due_ns = began_ns + TICK_NS
        self._woken_us = array("Q")
        self._late_ms = array("d")

    def look(self, now_ns: int) -> None:
        """Note a wake-up, and set the next tick that is still to come."""
        late_ns = now_ns - self.due_ns
        self._woken_us.append((now_ns - self.began_ns) // 1000)
        self._late_ms.append(late_ns / 1e6)
        self.due_ns += TICK_NS * (late_ns // TICK_NS + 1)

    def end(self, now_ns: int) -> None:
        """Note a tick that is overdue when the load ends: no wake-up will come for it."""
        if now_ns >= self.due_ns:
            self.look(now_ns)

    def report(self) -> dict[str, Any]:
        """Return the looks, for :meth:`Looks.of`."""
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


@dataclass(frozen=True)
class Looks:
    """The looks of a probe: when the loop woke (int64, ns), and how late it was then (ms)."""

    woken_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    late_ms: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Looks:
        """Read a probe's report."""
        woken_us = np.array(report["woken_us"], dtype=np.int64)
        late_ms = np.array(report["late_ms"], dtype=float)
        return cls(woken_us * 1000 + int(report["began_ns"]), late_ms)

    @cached_property
    def ticks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return due instant (ns) and lateness (ms) of every tick, missed ones included."""
        counts = (self.late_ms // TICK_MS).astype(np.int64).clip(0) + 1
        first = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - np.repeat(first, counts)
        late_ms = np.repeat(self.late_ms, counts) - place * TICK_MS
        return np.repeat(self.woken_ns, counts) - np.rint(late_ms * 1e6).astype(np.int64), late_ms

    def within(self, spans: np.ndarray) -> Looks:
        """Return the looks whose delay overlaps one of the spans (begins and ends, ns)."""
        due_ns = self.woken_ns - np.rint(self.late_ms * 1e6).astype(np.int64)
        chosen = overlapping(due_ns, self.woken_ns, spans)
        return Looks(self.woken_ns[chosen], self.late_ms[chosen])

    @property
    def is_stall(self) -> np.ndarray:
        """Return which looks missed at least one tick besides their own.

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


@dataclass(frozen=True)
class FailureStop:
    """A load's end by its number of failures, the last of which ended at ``at_ns``.

    ``after_s`` is that instant from the common start of the load, ``users`` the number who took
    part then by the plan (None: a load without users).
    """

    failures: int
    at_ns: int
    after_s: float
    users: int | None = None


def is_failure(errors: np.ndarray) -> np.ndarray:
    """Return which error codes are failures; those that the end of a load makes are not."""
    failed: np.ndarray = (errors != 0) & ~np.isin(errors, CUT_OFF_CODES)
    return failed


def mark(folder: Path, workers: int, failures: int) -> int:
    """Set the stage of requests that ended after a number of failures, in all workers' raw rows.

    Return the instant of the failure that completed the number; 0 where there were fewer.
    """
    files = [folder / str(number) / REQUESTS for number in range(workers)]
    parts = [np.memmap(file, dtype=ROW, mode="r+") for file in files if file.stat().st_size]
    ends = [rows["done_ns"][is_failure(rows["error"])] for rows in parts]
    failed_ns = np.sort(np.concatenate(ends)) if ends else np.empty(0, dtype=np.int64)
    if len(failed_ns) < failures:
        return 0
    at_ns = int(failed_ns[failures - 1])
    for rows in parts:
        late = (rows["done_ns"] > at_ns) & np.isin(rows["stage"], (WARMUP, MEASURE))
        rows["stage"][late] = AFTER_STOP
        rows.flush()
    return at_ns
