"""Users of a closed loop: they decide when each request starts, by the end of the one before.

Callbacks, not coroutines: a task per request would double what a request costs the client.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from perflab.load.client import Client
from perflab.load.cpu_window import CpuInWindows, CpuWindow, is_at_once
from perflab.load.exchange import Exchange
from perflab.load.outcome import AFTER, MEASURE, WARMUP
from perflab.load.prepared import Prepared
from perflab.load.schedule import Openings, stays
from perflab.load.timer import Timer
from perflab.load.workload import ClosedLoop

clock = time.monotonic_ns


class ClosedDriver:
    """Users who wait for their answers; they share the quotas of this worker.

    Warm-up and measurement follow each other without a pause, so the first measured request
    meets a loaded system and the users' simultaneous start falls into the warm-up. Those who keep
    the load up do so until the last measured request of this worker is answered.
    """

    def __init__(
        self,
        arrivals: ClosedLoop,
        users: Sequence[int],
        quota: tuple[int, int],
        client: Client,
        prepared: Prepared,
        timer: Timer,
        record: Callable[[Exchange], None],
    ) -> None:
        self._openings: Openings | None = None
        self.cpu = CpuInWindows() if arrivals.windows else CpuWindow(at_once=is_at_once(arrivals))
        self.in_flight = 0
        self._submit = client.submit
        self._timer = timer
        self._record = record
        self._think_ns = round(arrivals.think_time_s * 1e9)
        self._pace_ns = round(arrivals.pacing_s * 1e9)
        self._arrivals = arrivals
        self._warmup, self._measure = quota
        # Measured requests that are not answered: they keep the load up.
        self._awaited = self._measure if arrivals.keep_up else 0
        self._by_count = arrivals.requests > 0
        self._users = [Exchange(prepared, number, self._finished) for number in users]
        self._stays: dict[int, deque[tuple[int, int]]] = {}
        self._active = 0
        # Users whose next request is of a quota, and not due.
        self._thinking = 0
        self._steady = not (self._by_count or arrivals.stages or arrivals.windows)
        self._stopping = False
        self._over = asyncio.Event()
        self._measure_from_ns = 0
        self._end_ns = 0

    @property
    def unsent(self) -> int:
        """Return the requests of the quotas that were never started, where no time limits them."""
        by_count_only = self._by_count and not self._arrivals.duration_s
        return self._warmup + self._measure + self._thinking if by_count_only else 0

    def stop(self) -> None:
        """Let no user start another request."""
        if not self._stopping:
            self._stopping = True
            self.cpu.end()
        if not self.in_flight:
            self._over.set()

    async def run(self, start_ns: int) -> None:
        """Let every user work until the quotas or the time are used up."""
        arrivals = self._arrivals
        self._measure_from_ns = start_ns + round(arrivals.warmup_s * 1e9)
        length_s = arrivals.warmup_s + arrivals.duration_s
        bound_s = min(length_s, arrivals.max_duration_s) if arrivals.duration_s else 0
        self._end_ns = start_ns + round((bound_s or arrivals.max_duration_s) * 1e9)
        self._timer.at(self._end_ns, self.stop)
        if isinstance(self.cpu, CpuInWindows):
            self._openings = Openings(arrivals, start_ns)
            self.cpu.keep(self._openings.counted, self._timer)
        for user in self._users:
            join_ns = round(arrivals.ramp_s * 1e9 * user.user / arrivals.users)
            if arrivals.stages:
                self._stays[user.user] = deque(
                    (start_ns + since, start_ns + until)
                    for since, until in stays(arrivals.stages, user.user)
                )
            self._active += 1
            user.done_ns = start_ns + join_ns
            self._plan(user, start_ns + join_ns)
        self._end_without_work()
        try:
            await self._over.wait()
        finally:
            self.cpu.finish()

    def _end_without_work(self) -> None:
        """End when nobody has anything left to do; a load of a given time lasts its time."""
        all_taken = self._by_count and not self._warmup + self._measure
        if not self._active and (all_taken or not self._users):
            self.stop()

    def _present_ns(self, user: int, planned_ns: int) -> int:
        """Return when a user who comes and goes is there again, from an instant on."""
        own = self._stays[user]
        while own and own[0][1] <= planned_ns:
            own.popleft()
        return max(planned_ns, own[0][0]) if own else self._end_ns

    def _take(self, planned_ns: int) -> int:
        """Take one request and return its stage, or -1 when there is none left."""
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
        if not self.cpu.began:
            self.cpu.begin()
        if self._by_count and not self._measure:
            self.cpu.end()
        return MEASURE

    def _plan(self, user: Exchange, planned_ns: int) -> None:
        if self._stays:
            planned_ns = self._present_ns(user.user, planned_ns)
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
        """Do without a user from now on."""
        self._active -= 1
        self._end_without_work()

    def _start(self, user: Exchange) -> None:
        self._thinking -= user.stage != AFTER
        if self._stopping:
            self._give_back(user)
            return
        if user.stage == AFTER and not self._awaited:
            self._leave()
            return
        user.started_ns = clock()
        self.in_flight += 1
        self._submit(user)

    def _give_back(self, user: Exchange) -> None:
        if user.stage == WARMUP and self._by_count:
            self._warmup += 1
        elif user.stage == MEASURE and self._by_count:
            self._measure += 1

    def _finished(self, user: Exchange) -> None:
        self._record(user)
        if self._pace_ns:
            planned_ns = max(user.planned_ns + self._pace_ns, user.done_ns)
        else:
            planned_ns = user.done_ns + self._think_ns
        # The short way, taken most: the next request is due now, none has to be counted, and none
        # goes from one stage to the next.
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
