"""Drivers of closed and open loops: they start requests and record their ends.

They use callbacks, not coroutines: a task per request would double the client's cost of a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from perflab.load.clients.client import Client
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.outcome import AFTER, MEASURE, WARMUP
from perflab.load.workers.timer import Timer
from perflab.load.workload.arrivals import Burst, ClosedLoop, OpenLoop
from perflab.load.workload.schedule import Openings, instants

clock = time.monotonic_ns
# How long after the end of its schedule an open loop still sends requests that are late.
GRACE_NS = 1_000_000_000


class ClosedDriver:
    """Users who wait for their answers; they share the quotas of this worker.

    The measurement follows the warm-up without a pause, so the first measured request meets a
    loaded system and the users' simultaneous start falls into the warm-up. With ``keep_up`` users
    go on until the last measured request of this worker is answered.
    """

    def __init__(
        self,
        arrivals: ClosedLoop,
        users: Sequence[int],
        quota: tuple[int, int],
        submit: Callable[[Exchange], None],
        prepared: Prepared,
        timer: Timer,
        record: Callable[[Exchange], None],
    ) -> None:
        self._openings: Openings | None = None
        self.in_flight = 0
        self._submit = submit
        self._timer = timer
        self._record = record
        self._think_ns = round(arrivals.think_time_s * 1e9)
        self._pace_ns = round(arrivals.pacing_s * 1e9)
        self._arrivals = arrivals
        self._warmup, self._measure = quota
        # Measured requests without an answer yet: while there are any, users keep the load up.
        self._awaited = self._measure if arrivals.keep_up else 0
        self._by_count = arrivals.requests > 0
        self._users = [Exchange(prepared, number, self._finished) for number in users]
        self._active = 0
        # Users who wait for the planned instant of a request of a quota.
        self._thinking = 0
        self._steady = not (self._by_count or arrivals.windows)
        self._stopping = False
        self._over = asyncio.Event()
        self._measure_from_ns = 0
        self._end_ns = 0

    @property
    def unsent(self) -> int:
        """Return how many requests of the quotas were never started; 0 for a load by time."""
        by_count_only = self._by_count and not self._arrivals.duration_s
        return self._warmup + self._measure + self._thinking if by_count_only else 0

    def stop(self) -> None:
        """Let no user start another request."""
        self._stopping = True
        if not self.in_flight:
            self._over.set()

    async def run(self, start_ns: int) -> None:
        """Let every user send while requests and time are left; return when the last has ended."""
        arrivals = self._arrivals
        self._measure_from_ns = start_ns + round(arrivals.warmup_s * 1e9)
        lasts_s = arrivals.max_duration_s
        if arrivals.duration_s:
            lasts_s = min(lasts_s, arrivals.warmup_s + arrivals.duration_s)
        self._end_ns = start_ns + round(lasts_s * 1e9)
        self._timer.at(self._end_ns, self.stop)
        if arrivals.windows:
            self._openings = Openings(arrivals, start_ns)
        for user in self._users:
            joins_ns = start_ns + round(arrivals.ramp_s * 1e9 * user.user / arrivals.users)
            self._active += 1
            # As if its last answer had come then: the next request is planned from there.
            user.done_ns = joins_ns
            self._plan(user, joins_ns)
        self._stop_without_work()
        await self._over.wait()

    def _stop_without_work(self) -> None:
        """Stop if no user has a request left; a load of a given time lasts its time."""
        all_taken = self._by_count and not self._warmup + self._measure
        if not self._active and (all_taken or not self._users):
            self.stop()

    def _take(self, planned_ns: int) -> int:
        """Take one request of the quotas and return its stage; -1 if none is left."""
        if self._stopping or planned_ns >= self._end_ns:
            return -1
        if self._warmup:
            self._warmup -= 1
            return WARMUP
        if planned_ns < self._measure_from_ns:
            return WARMUP
        if self._openings is not None and not self._openings.counts(planned_ns):
            return WARMUP
        if self._by_count:
            if not self._measure:
                return AFTER if self._awaited else -1
            self._measure -= 1
        return MEASURE

    def _plan(self, user: Exchange, planned_ns: int) -> None:
        if self._openings is not None:
            planned_ns = self._openings.next(planned_ns, self._end_ns)
        stage = self._take(planned_ns)
        if stage < 0:
            self._leave()
            return
        user.renew()
        user.stage = stage
        user.planned_ns = planned_ns
        now_ns = clock()
        if planned_ns > now_ns:
            self._thinking += stage != AFTER
            self._timer.at(planned_ns, partial(self._start, user))
        else:
            user.started_ns = now_ns
            self.in_flight += 1
            self._submit(user)

    def _leave(self) -> None:
        """Remove a user from the load."""
        self._active -= 1
        self._stop_without_work()

    def _start(self, user: Exchange) -> None:
        if self._stopping:
            return  # It stays among those who wait, and so counts as unsent.
        self._thinking -= user.stage != AFTER
        if user.stage == AFTER and not self._awaited:
            self._leave()
            return
        user.started_ns = clock()
        self.in_flight += 1
        self._submit(user)

    def _finished(self, user: Exchange) -> None:
        self._record(user)
        if self._pace_ns:
            planned_ns = max(user.planned_ns + self._pace_ns, user.done_ns)
        else:
            planned_ns = user.done_ns + self._think_ns
        # The fast path, taken most: the next request is due now, has no quota, and has the same
        # stage.
        steady = self._steady and user.stage == MEASURE
        if steady and planned_ns < self._end_ns and not self._stopping:
            now_ns = clock()
            if planned_ns <= now_ns:
                user.planned_ns = planned_ns
                user.sent_ns = user.first_byte_ns = user.connect_ns = user.close_ns = 0
                user.progress = user.stream = None
                user.started_ns = now_ns
                self._submit(user)
                return
        self.in_flight -= 1
        if self._awaited and user.stage == MEASURE:
            self._awaited -= 1
        self._plan(user, planned_ns)
        if self._stopping and not self.in_flight:
            self._over.set()


class OpenDriver:
    """Starts requests by a schedule fixed before the start, whatever the server does.

    A late request is started all the same: its response time counts from the planned instant.
    Requests that a slow client, or the lack of a free connection, keeps from being sent until a
    second after the end of the schedule are given up as unsent. A burst ends with its last answer.
    """

    def __init__(
        self,
        arrivals: OpenLoop | Burst,
        worker: int,
        workers: int,
        client: Client,
        submit: Callable[[Exchange], None],
        prepared: Prepared,
        timer: Timer,
        record: Callable[[Exchange], None],
    ) -> None:
        self._windowed = arrivals if isinstance(arrivals, OpenLoop) and arrivals.windows else None
        self._openings: Openings | None = None
        self.in_flight = 0
        self.unsent = 0
        self._submit = submit
        self._give_up_waiting = client.give_up_waiting
        self._prepared = prepared
        self._timer = timer
        self._record = record
        self._chunks: Iterator[list[int]] = (
            chunk.tolist() for chunk in instants(arrivals, worker, workers)
        )
        self._warmup_ns = round(getattr(arrivals, "warmup_s", 0.0) * 1e9)
        self._length_ns = round(getattr(arrivals, "duration_s", 0.0) * 1e9)
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
        if self._windowed:
            self._openings = Openings(self._windowed, start_ns)
        if self._next():
            self._timer.at(self._planned_ns, self._advance)
        else:
            self.stop()
        if self._length_ns:
            self._timer.at(start_ns + self._length_ns + GRACE_NS, self._end)
        await self._over.wait()

    def _end(self) -> None:
        """End a load that is behind its schedule: it lasts no longer than planned."""
        self.stop()
        self._give_up_waiting()

    def stop(self) -> None:
        """Start no more requests; count the rest of the schedule as unsent."""
        if not self._stopping:
            self._stopping = True
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
        self.in_flight += 1
        exchange.started_ns = clock()
        self._submit(exchange)

    def _finished(self, exchange: Exchange) -> None:
        self.in_flight -= 1
        self._record(exchange)
        self._free.append(exchange)
        if self._stopping and not self.in_flight:
            self._over.set()
