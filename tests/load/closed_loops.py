"""Closed loops by event simulation: who plans what when, with an answer known beforehand."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perflab.load.clients.outcome import MEASURE, WARMUP
from perflab.load.records.result import LoadResult
from perflab.load.workload.windows import BEGIN, COUNTED, Cycles, window_of
from tests.load.planted import BEGIN_NS, load_result

MS = 1_000_000
Draw = Callable[[], float]


@dataclass(frozen=True)
class Server:
    """A service that lets each request wait (ms), and then computes for it, one at a time (ms)."""

    wait_ms: Draw
    work_ms: Draw = lambda: 0.0


def cut(slice_ms: float, count: int, treatments: int = 2) -> np.ndarray:
    """Return the windows of one of some treatments that take turns, ns: begin, counted, end."""
    gap_ms = max(10.0, slice_ms / 5)
    begin = gap_ms + np.arange(count) * treatments * (slice_ms + gap_ms)
    windows = np.stack([begin, begin + slice_ms / 5, begin + slice_ms], axis=1)
    windows_ns: np.ndarray = BEGIN_NS + np.rint(windows * MS).astype(np.int64)
    return windows_ns


def requests(
    server: Server, users: int, windows: np.ndarray, think_ms: float = 0.0, pacing_ms: float = 0.0
) -> Iterator[tuple[int, int]]:
    """Yield when each request was planned and done, in ns; users plan in windows alone."""
    events = [(int(windows[0, BEGIN]), user) for user in range(users)]
    heapq.heapify(events)
    waiting: list[tuple[int, int, int]] = []
    free_ns = 0
    while events or waiting:
        if events and (not waiting or events[0][0] <= waiting[0][0]):
            planned_ns, user = heapq.heappop(events)
            heapq.heappush(waiting, (planned_ns + round(server.wait_ms() * MS), user, planned_ns))
            continue
        ready_ns, user, planned_ns = heapq.heappop(waiting)
        done_ns = free_ns = max(free_ns, ready_ns) + round(server.work_ms() * MS)
        yield planned_ns, done_ns
        next_ns = max(done_ns + round(think_ms * MS), planned_ns + round(pacing_ms * MS))
        opening_ns = _opening_ns(windows, next_ns)
        if opening_ns is not None:
            heapq.heappush(events, (opening_ns, user))


def _opening_ns(windows: np.ndarray, at_ns: int) -> int | None:
    if window_of(np.array([at_ns]), windows)[0] >= 0:
        return at_ns
    later = windows[windows[:, BEGIN] >= at_ns, BEGIN]
    return int(later[0]) if len(later) else None


def load(
    folder: Path,
    server: Server,
    users: int,
    windows: np.ndarray,
    think_ms: float = 0.0,
    pacing_ms: float = 0.0,
) -> LoadResult:
    """Return what such a loop would have left on disk."""
    instants = np.array(list(requests(server, users, windows, think_ms, pacing_ms)))

    def planted(rows: np.ndarray) -> None:
        rows["planned_ns"] = rows["started_ns"] = rows["sent_ns"] = instants[:, 0]
        rows["done_ns"] = rows["first_byte_ns"] = instants[:, 1]
        settled = instants[:, 0] >= windows[window_of(instants[:, 0], windows), COUNTED]
        rows["stage"] = np.where(settled, MEASURE, WARMUP)

    cycles = Cycles(users, round(think_ms * MS), round(pacing_ms * MS))
    return load_result(
        folder, np.zeros(len(instants)), change=planted, windows=windows, cycles=cycles
    )
