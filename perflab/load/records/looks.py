"""Looks at a worker's event loop, on a grid of ticks: how late it is, and when it stood still.

A loop that stands still misses ticks. Each of them counts, with its own lateness: a stall of 150 ms
is one late wake-up of 150 ms and 29 more ticks that were late by 145, 140 and so on. Who looks only
when the loop wakes sees one late look among many and leaves out what requests of that time would
have waited: coordinated omission, inside the check against it (G. Tene, "How not to measure
latency", 2013).

Where a load ended by its number of failures, found in its record.

The instant is that of the failure which completed the number, over the rows of all workers: they
share a clock, and so no message between them decides what was before it and what after. What ended
later, because it was under way or because a worker had not heard yet, has a stage of its own: it
ended on a server that had already failed, in a load that was going.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perflab.load.clients.outcome import AFTER_STOP, CUT_OFF_CODES, MEASURE, WARMUP
from perflab.load.records.columns import REQUESTS, ROW
from perflab.load.workload.windows import overlapping

TICK_NS = 5_000_000
TICK_MS = TICK_NS / 1e6


class Probe:
    """Notes how late the event loop is at ticks of an absolute grid.

    A wake-up is one look, however many ticks were missed before it: what a process that is stopped
    for hours keeps is 16 bytes. The ticks are told from the looks afterwards.
    """

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.due_ns = began_ns + TICK_NS
        self._woken_us = array("Q")
        self._late_ms = array("d")

    def look(self, now_ns: int) -> None:
        """Note a wake-up, and wait for the first tick that is not over."""
        late_ns = now_ns - self.due_ns
        self._woken_us.append((now_ns - self.began_ns) // 1000)
        self._late_ms.append(late_ns / 1e6)
        self.due_ns += TICK_NS * (late_ns // TICK_NS + 1)

    def end(self, now_ns: int) -> None:
        """Note a tick that is overdue when the load ends: nobody will be woken for it."""
        if now_ns >= self.due_ns:
            self.look(now_ns)

    def report(self) -> dict[str, Any]:
        """Return what was noted, for :meth:`Looks.of`."""
        return {
            "began_ns": self.began_ns,
            "woken_us": self._woken_us.tolist(),
            "late_ms": self._late_ms.tolist(),
        }


def _nothing() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True)
class Looks:
    """What a probe saw: when the loop woke (int64, ns), and how late it was then (ms)."""

    woken_ns: np.ndarray = field(default_factory=_nothing)
    late_ms: np.ndarray = field(default_factory=_nothing)

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Looks:
        """Read a probe's report."""
        woken_us = np.array(report["woken_us"], dtype=np.int64)
        late_ms = np.array(report["late_ms"], dtype=float)
        return cls(woken_us * 1000 + int(report["began_ns"]), late_ms)

    @cached_property
    def ticks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return every tick, those missed too: when it was due (ns), and how late it was (ms)."""
        counts = (self.late_ms // TICK_MS).astype(np.int64).clip(0) + 1
        first = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - np.repeat(first, counts)
        late_ms = np.repeat(self.late_ms, counts) - place * TICK_MS
        return np.repeat(self.woken_ns, counts) - np.rint(late_ms * 1e6).astype(np.int64), late_ms

    def within(self, spans: np.ndarray) -> Looks:
        """Return the looks of which a part lies in one of some spans: begins and ends in ns."""
        due_ns = self.woken_ns - np.rint(self.late_ms * 1e6).astype(np.int64)
        chosen = overlapping(due_ns, self.woken_ns, spans)
        return Looks(self.woken_ns[chosen], self.late_ms[chosen])

    @property
    def is_stall(self) -> np.ndarray:
        """Return which looks missed at least one more tick than the one that they were due for.

        What lasts shorter is seen by some ticks and not by others: it is judged as the lateness of
        a sample, and not request by request.
        """
        late: np.ndarray = self.late_ms >= TICK_MS
        return late

    @cached_property
    def stalls(self) -> np.ndarray:
        """Return when the loop stood still: begin and end in ns, shape (stalls, 2), in order.

        It stood still at some instant after the last tick at which it was awake: a stall is taken
        to be as long as it can have been, at most one tick too long.
        """
        woken_ns, late = self.woken_ns.astype(np.int64), self.is_stall
        earliest = woken_ns - np.rint(self.late_ms * 1e6).astype(np.int64) - TICK_NS
        awake = np.concatenate([earliest[:1], woken_ns[:-1]])
        begin = np.maximum(earliest, awake)
        return np.stack([begin[late], woken_ns[late]], axis=1)

    def stood_still_ns(self, since_ns: np.ndarray, until_ns: np.ndarray) -> np.ndarray:
        """Return for how much of each time between two instants the loop stood still, in ns."""
        if not len(self.stalls):
            return np.zeros(len(since_ns), dtype=np.int64)
        edges = self.stalls.ravel()
        lengths = self.stalls[:, 1] - self.stalls[:, 0]
        # Stalled time up to an edge: it grows within a stall and rests between two.
        total = np.repeat(np.cumsum(lengths), 2)
        total[::2] -= lengths
        origin = edges[0]
        until, since = (
            np.interp(each - origin, edges - origin, total) for each in (until_ns, since_ns)
        )
        still: np.ndarray = np.rint(until - since).astype(np.int64)
        return still


@dataclass(frozen=True)
class FailureStop:
    """A load's end by its number of failures.

    Attributes
    ----------
    failures : int
        The number that ended it.
    at_ns : int
        When the last of them ended (CLOCK_MONOTONIC).
    after_s : float
        The same from the common start of the load.
    users : int, optional
        Users who took part then, by the plan; None where a load has no users.
    """

    failures: int
    at_ns: int
    after_s: float
    users: int | None = None


def is_failure(errors: np.ndarray) -> np.ndarray:
    """Return which error codes count; those that the end of a load makes do not."""
    counts: np.ndarray = (errors != 0) & ~np.isin(errors, CUT_OFF_CODES)
    return counts


def mark(folder: Path, workers: int, failures: int) -> int:
    """Give what ended after a number of failures its stage, in the raw rows of all workers.

    Returns
    -------
    int
        The instant of the failure that completed the number; 0, and nothing is changed, where
        there were fewer.
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
