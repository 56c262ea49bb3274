"""A world for drivers, without a server, in which time passes only when somebody waits."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.targets import split
from perflab.load.workers import drivers
from perflab.load.workers.drivers import ClosedDriver, OpenDriver
from perflab.load.workload import Burst, ClosedLoop, OpenLoop, Request
from tests.load.planted import MS, S

START_NS = 50 * S
ORIGIN, _ = split("http://127.0.0.1:80")
NOTHING = Prepared(Request(), ORIGIN)


@dataclass
class Sent:
    """One finished request: its instants, from the start of the load."""

    user: int
    stage: int
    template: int
    planned_ns: int
    started_ns: int
    done_ns: int


@dataclass
class World:
    """Clock, timer, client and record of one driver.

    The server takes ``service_ns``, the client is woken ``late_ns`` late and takes ``handling_ns``
    to notice an answer. In ``stall`` (from the start) it does not run at all.
    """

    service_ns: int = 10 * MS
    late_ns: int = 0
    handling_ns: int = 0
    stall: tuple[int, int] = (0, 0)
    now_ns: int = START_NS - S
    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], object], int]] = []
        self._count = 0
        self.timeout_s = 30.0
        self.first_errors = SimpleNamespace(note=lambda *_: None)

    def clock(self) -> int:
        """Return the time, in place of the monotonic clock."""
        return self.now_ns

    def at(self, instant_ns: int, call: Callable[[], object]) -> None:
        """Call at an instant (as the timer), or later: the client is woken late."""
        self._call(instant_ns, call, self.late_ns)

    def _call(self, instant_ns: int, call: Callable[[], object], late_ns: int) -> None:
        self._count += 1
        heapq.heappush(self._due, (instant_ns, self._count, call, late_ns))

    def submit(self, exchange: Exchange) -> None:
        """Send a request, as a client does."""
        exchange.sent_ns = self.now_ns
        done_ns = self.now_ns + self.service_ns

        def answered() -> None:
            exchange.first_byte_ns = exchange.done_ns = done_ns
            exchange.finish(exchange)

        self._call(done_ns, answered, self.handling_ns)

    def give_up_waiting(self) -> None:
        """Do nothing: no request waits for a connection here."""

    def record(self, exchange: Exchange) -> None:
        """Keep a request that a driver records."""
        instants = (exchange.planned_ns, exchange.started_ns, exchange.done_ns)
        since = [instant - START_NS for instant in instants]
        self.sent.append(Sent(exchange.user, exchange.stage, exchange.template, *since))

    def closed(self, arrivals: ClosedLoop, stop_ns: int = 0) -> tuple[list[Sent], int]:
        """Run a closed loop; return its requests, and how many a stop left unsent."""
        quota = (arrivals.warmup_requests, arrivals.requests)
        users = range(arrivals.users)
        driver = ClosedDriver(arrivals, users, quota, self.submit, NOTHING, self, self.record)
        return self._driven(driver, stop_ns)

    def opened(self, arrivals: OpenLoop | Burst, stop_ns: int = 0) -> tuple[list[Sent], int]:
        """Run an open loop; return its requests by planned instant, and how many were unsent."""
        driver = OpenDriver(arrivals, 0, 1, self, self.submit, NOTHING, self, self.record)
        requests, unsent = self._driven(driver, stop_ns)
        return sorted(requests, key=lambda request: request.planned_ns), unsent

    def _driven(self, driver: Any, stop_ns: int) -> tuple[list[Sent], int]:
        if stop_ns:
            self.at(START_NS + stop_ns, driver.stop)
        with patch.object(drivers, "clock", self.clock):
            return self.live(driver.run(START_NS)), driver.unsent

    def live(self, life: Coroutine[Any, Any, None]) -> list[Sent]:
        """Let a driver run to its end; return what it recorded, by planned instant."""
        asyncio.run(self._live(life))
        return sorted(self.sent, key=lambda request: (request.user, request.planned_ns))

    async def _live(self, life: Coroutine[Any, Any, None]) -> None:
        running = asyncio.ensure_future(life)
        while True:
            for _ in range(32):  # whatever can go on without time goes on
                await asyncio.sleep(0)
            if running.done():
                return await running
            assert self._due, "the driver waits for nothing"
            instant_ns, _, call, late_ns = heapq.heappop(self._due)
            self.now_ns = max(self.now_ns, self._awake(instant_ns + late_ns))
            call()

    def _awake(self, instant_ns: int) -> int:
        begin_ns, end_ns = (START_NS + bound for bound in self.stall)
        return end_ns if begin_ns <= instant_ns < end_ns else instant_ns
