"""Results written through psycopg2, from worker threads."""

from __future__ import annotations

import select
import threading
import time

import psycopg2
from psycopg2 import extensions
from psycopg2.pool import ThreadedConnectionPool
from specimen.settings import content
from specimen.timing import Phases

from app.settings import Settings

INSERT = "INSERT INTO inferences (label, probability) VALUES (%s, %s) RETURNING id"


def has_ended(connection: extensions.connection) -> bool:
    """Look, without a round trip, whether an idle connection has anything to read: its end."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class BlockingStore:
    """A pool of psycopg2 connections with a queue in front.

    The library's pool raises when it is exhausted, so a semaphore makes threads wait instead.
    """

    def __init__(self, settings: Settings, pool: tuple[int, int]) -> None:
        """Connect; ``pool`` is how many connections are kept, and how many there may be."""
        least, most = pool
        self._free = threading.BoundedSemaphore(most)
        self._pool = ThreadedConnectionPool(
            least,
            most,
            host=settings.database_host,
            port=settings.database_port,
            dbname="perflab",
            user="perflab",
            password=content(settings.password_file),
            connect_timeout=10,
            application_name="inference-psycopg2",
        )

    def insert(self, label: int, probability: float, phases: Phases) -> int:
        """Write one row and return its id; raises psycopg2.Error."""
        begin = time.perf_counter_ns()
        with self._free:
            connection = self._take()
            phases.add("pool", begin)
            try:
                return self._insert(connection, label, probability, phases)
            finally:
                # A connection in error is closed, never handed to the next request.
                idle = connection.info.transaction_status == extensions.TRANSACTION_STATUS_IDLE
                with phases.phase("release"):
                    self._pool.putconn(connection, close=not idle)

    def _take(self) -> extensions.connection:
        """Return a connection that the server has not ended meanwhile, as asyncpg's pool does."""
        while has_ended(connection := self._pool.getconn()):
            self._pool.putconn(connection, close=True)
        return connection

    def _insert(
        self, connection: extensions.connection, label: int, probability: float, phases: Phases
    ) -> int:
        with connection.cursor() as cursor:
            with phases.phase("execute"):
                cursor.execute(INSERT, (label, probability))
                row = cursor.fetchone()
            with phases.phase("commit"):
                connection.commit()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close all connections."""
        self._pool.closeall()


DatabaseError = psycopg2.Error
