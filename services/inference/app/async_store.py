"""Results written through asyncpg, from the event loop."""

from __future__ import annotations

import time
from typing import Any

import asyncpg
from specimen.settings import content
from specimen.timing import Phases

from app.settings import Settings

INSERT = "INSERT INTO inferences (label, probability) VALUES ($1, $2) RETURNING id"
NEVER = 2**62


class AsyncStore:
    """A pool of asyncpg connections."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, settings: Settings, pool: tuple[int, int]) -> AsyncStore:
        """Connect; ``pool`` is how many connections are kept, and how many there may be."""
        least, most = pool
        connections = await asyncpg.create_pool(
            host=settings.database_host,
            port=settings.database_port,
            database="perflab",
            user="perflab",
            password=content(settings.password_file),
            timeout=10,
            min_size=least,
            max_size=most,
            # No connection is replaced for its age or its number of queries: psycopg2's pool does
            # not either, and a reconnect inside a trial would hit one driver only.
            max_inactive_connection_lifetime=0,
            max_queries=NEVER,
            server_settings={"application_name": "inference-asyncpg"},
        )
        return cls(connections)

    async def insert(self, label: int, probability: float, phases: Phases) -> int:
        """Write one row and return its id."""
        begin = time.perf_counter_ns()
        connection = await self._pool.acquire()
        phases.add("pool", begin)
        try:
            return await self._insert(connection, label, probability, phases)
        finally:
            with phases.phase("release"):
                await self._pool.release(connection)

    async def _insert(self, connection: Any, label: int, probability: float, phases: Phases) -> int:
        transaction = connection.transaction()
        with phases.phase("execute"):
            await transaction.start()
            try:
                row_id = await connection.fetchval(INSERT, label, probability)
            except BaseException:
                await transaction.rollback()
                raise
        with phases.phase("commit"):
            await transaction.commit()
        return int(row_id)

    async def show(self, name: str) -> str:
        """Return a setting of the server as this pool's connections see it."""
        return str(await self._pool.fetchval("SELECT current_setting($1)", name))

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()


DatabaseError = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
