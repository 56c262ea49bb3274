"""Keeps the connections of a lean client to their life cycle: counts, alarms, churn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from random import Random

from perflab.load.connection import Connection
from perflab.load.life_cycle import Connections

clock = time.monotonic_ns


class Upkeep:
    """Closes connections that were used, idle or open long enough.

    Parameters
    ----------
    life : Connections
        Of this worker: its part of the churn.
    opened : iterable of Connection
        Those that are open, the oldest first; looked at anew each time.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, life: Connections, opened: Iterable[Connection]
    ) -> None:
        self._loop = loop
        self._life = life
        self._opened = opened
        self._idle_ns = round(life.idle_s * 1e9)
        self._random = Random(0)
        self._due_s = loop.time()
        self._ticker: asyncio.TimerHandle | None = None
        if life.churn_per_s:
            self._tick_later()

    def ends(self, connection: Connection) -> bool:
        """Take note of an answer; return whether it was the connection's last."""
        connection.answers += 1
        if connection.leaving or connection.answers == self._life.requests:
            return True
        return self._random.random() < self._life.churn_share

    def rests(self, connection: Connection, since_ns: int) -> None:
        """Take note that a connection has nothing to do since an instant."""
        connection.rests_since_ns = since_ns
        if self._idle_ns and connection.alarm is None:
            self._wake_later(connection, self._idle_ns)

    def _wake_later(self, connection: Connection, in_ns: int) -> None:
        connection.alarm = self._loop.call_later(in_ns / 1e9, self._look, connection)

    def _look(self, connection: Connection) -> None:
        # One alarm for all rests of a connection: to set it anew at each request would cost more.
        left_ns = self._idle_ns
        if connection.exchange is None:
            left_ns += connection.rests_since_ns - clock()
        if left_ns <= 0:
            connection.close()
        else:
            self._wake_later(connection, left_ns)

    def _tick_later(self) -> None:
        self._due_s += 1 / self._life.churn_per_s
        self._ticker = self._loop.call_at(self._due_s, self._tick)

    def _tick(self) -> None:
        oldest = next((each for each in self._opened if not each.leaving), None)
        if oldest is not None:
            oldest.leaving = True
            if oldest.exchange is None:
                oldest.close()
        self._tick_later()

    def stop(self) -> None:
        """Close no more."""
        if self._ticker is not None:
            self._ticker.cancel()
