"""Requests of an open loop: they start by a schedule, by callbacks as those of a closed one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from perflab.load.client import Client
from perflab.load.cpu_window import CpuInWindows, CpuWindow, is_at_once
from perflab.load.exchange import Exchange
from perflab.load.outcome import MEASURE, WARMUP
from perflab.load.prepared import Prepared
from perflab.load.schedule import Openings, instants
from perflab.load.timer import Timer
from perflab.load.workload import Burst, OpenLoop

clock = time.monotonic_ns
# How long after the end of its schedule an open loop still sends what it could not send in time.
GRACE_NS = 1_000_000_000


class OpenDriver:
    """Starts requests by a schedule fixed before the start, whatever the server does.

    A late start is a start all the same: its response time is charged from the planned instant.
    What could not be sent until a second after the end of the schedule, by a client that is too
    slow or for want of a free connection, is given up as unsent. A burst has no end but its last
    answer.
    """

    def __init__(
        self,
        arrivals: OpenLoop | Burst,
        worker: int,
        workers: int,
        client: Client,
        prepared: Prepared,
        timer: Timer,
        record: Callable[[Exchange], None],
    ) -> None:
        self._windowed = arrivals if isinstance(arrivals, OpenLoop) and arrivals.windows else None
        self._openings: Openings | None = None
        self.cpu = CpuInWindows() if self._windowed else CpuWindow(at_once=is_at_once(arrivals))
        self.in_flight = 0
        self.unsent = 0
        self._submit = client.submit
        self._give_up_waiting = client.give_up_waiting
        self._prepared = prepared
        self._timer = timer
        self._record = record
        self._chunks: Iterator[list[int]] = (
            chunk.tolist() for chunk in instants(arrivals, worker, workers)
        )
        self._warmup_ns = self._length_ns = 0
        if isinstance(arrivals, OpenLoop):
            self._warmup_ns = round(arrivals.warmup_s * 1e9)
            self._length_ns = round(arrivals.duration_s * 1e9)
        self._ready: list[int] = []
        self._position = 0
        self._free: list[Exchange] = []
        self._slots = 0
        self._start_ns = 0
        self._planned_ns = 0
        self._stopping = False
        self._over = asyncio.Event()

    async def run(self, start_ns: int) -> None:
        """Keep the schedule; return when the last response has come."""
        self._start_ns = start_ns
        self._measure_from_ns = start_ns + self._warmup_ns
        if self._windowed and isinstance(self.cpu, CpuInWindows):
            self._openings = Openings(self._windowed, start_ns)
            self.cpu.keep(self._openings.counted, self._timer)
        if self._next():
            self._timer.at(self._planned_ns, self._advance)
        else:
            self.stop()
        if self._length_ns:
            self._timer.at(start_ns + self._length_ns + GRACE_NS, self._end)
        try:
            await self._over.wait()
        finally:
            self.cpu.finish()

    def _end(self) -> None:
        """End a load that was overtaken by its schedule: it lasts no longer than was asked for."""
        self.stop()
        self._give_up_waiting()

    def stop(self) -> None:
        """Start nothing more; what the schedule still held is counted as unsent."""
        if not self._stopping:
            self._stopping = True
            self.cpu.end()
            if self._planned_ns:
                rest = len(self._ready) - self._position + 1
                self.unsent = rest + sum(len(chunk) for chunk in self._chunks)
        if not self.in_flight:
            self._over.set()

    def _next(self) -> bool:
        while self._position == len(self._ready):
            chunk = next(self._chunks, None)
            if chunk is None:
                self._planned_ns = 0
                return False
            self._ready, self._position = chunk, 0
        self._planned_ns = self._start_ns + self._ready[self._position]
        self._position += 1
        return True

    def _advance(self) -> None:
        if self._stopping:
            return
        now_ns = clock()
        while self._planned_ns <= now_ns:
            self._start(self._planned_ns)
            if not self._next():
                self.stop()
                return
        self._timer.at(self._planned_ns, self._advance)

    def _start(self, planned_ns: int) -> None:
        if self._free:
            exchange = self._free.pop()
            exchange.renew()
        else:
            exchange = Exchange(self._prepared, self._slots, self._finished)
            self._slots += 1
        exchange.planned_ns = planned_ns
        if planned_ns < self._measure_from_ns or (
            self._openings is not None and not self._openings.counts(planned_ns)
        ):
            exchange.stage = WARMUP
        else:
            exchange.stage = MEASURE
            if not self.cpu.began:
                self.cpu.begin()
        self.in_flight += 1
        exchange.started_ns = clock()
        self._submit(exchange)

    def _finished(self, exchange: Exchange) -> None:
        self.in_flight -= 1
        self._record(exchange)
        self._free.append(exchange)
        if self._stopping and not self.in_flight:
            self._over.set()
