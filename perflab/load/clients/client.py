"""The lean HTTP/1.1 client: connections per origin, waiting requests, timeouts, redirects."""

from __future__ import annotations

import asyncio
import resource
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from perflab.errors import TargetRefused
from perflab.host.shortages import few_files
from perflab.load.clients.connection import Connection
from perflab.load.clients.exchange import (
    ENDLESS,
    OF_WHOLE_REPLIES,
    REDIRECTS,
    Exchange,
    Prepared,
    followed,
)
from perflab.load.clients.kept_replies import ReplyKeeper
from perflab.load.clients.library_client import LibraryClient
from perflab.load.clients.outcome import CODES, FirstErrors
from perflab.load.clients.targets import Origin, looked_up
from perflab.load.workload.request import Connections
from perflab.load.workload.workload import Workload

SPARE_FILES = 64
# Only redirects lead to that many origins, each with another port.
MAX_ORIGINS = 1_000
DEFAULT_CONNECTIONS = 2_000
LANDING_BYTES = 256 * 1024
# Opening costs ten times as much as sending. After a stall the client therefore reads the answers
# that have come, and uses their connections again, before it opens more.
OPENED_PER_TURN = 16


def allow_files(count: int) -> int:
    """Raise this process's limit on open files if needed; return how many may be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, soft - SPARE_FILES)


def few_files_for(connections: Connections) -> str:
    """Return in words that this process may not open so many connections; empty where it may."""
    return few_files((connections.most or DEFAULT_CONNECTIONS) + SPARE_FILES)


class LeanClient:
    """Sends prepared requests over connections of its own.

    ``life`` says how long connections live, with this worker's part of the cap; a request that
    finds no free connection under it waits in turn. ``timeout_s`` bounds the time from the start of
    a request to its end. With ``sticky`` a user keeps its connection between requests; otherwise
    idle ones are shared. Redirects may lead to loopback and the ``allowed`` hosts. ``beside`` is
    the number of other files that this process opens: scripted users' WebSockets.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        life: Connections = ENDLESS,
        timeout_s: float = 30.0,
        sticky: bool = False,
        allowed: Sequence[str] = (),
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        beside: int = 0,
    ) -> None:
        self.loop = loop
        self.capped = self.resent = 0
        self.first_errors = FirstErrors()
        self.keeper: ReplyKeeper | None = None
        # All connections read long bodies into it: each piece is used before the next read.
        self.landing = memoryview(bytearray(LANDING_BYTES))
        self._opened_now = 0
        self._life = life
        most = life.most or DEFAULT_CONNECTIONS
        self._limit = max(1, min(most, allow_files(most + beside) - beside))
        # Where files are short, users who keep their connections would leave none for others.
        self._sticky = sticky and self._limit >= most
        self.timeout_s = timeout_s
        self._timeout_ns = round(timeout_s * 1e9)
        self._allowed = allowed
        self.tls = cache(tls)
        # Last in, first out; a dictionary, because any idle connection may close.
        self._idle: dict[Origin, dict[Connection, None]] = {}
        self._open: dict[Connection, None] = {}
        self._waiting: deque[Exchange] = deque()
        # A failed look-up is kept as well.
        self.address = lru_cache(MAX_ORIGINS)(looked_up)
        self._sweep_s = min(0.1, max(0.001, timeout_s / 50))
        self._sweeper = loop.call_later(self._sweep_s, self._sweep)

    # Sending.

    def submit(self, exchange: Exchange) -> None:
        """Send a request on the user's connection, an idle or a new one, or let it wait.

        A new connection may take the place of an idle one to another origin.
        """
        connection = exchange.connection
        if connection is not None:
            origin, target = connection.origin, exchange.prepared.origin
            if connection.usable and (origin is target or origin == target):
                connection.send(exchange)
                return
            exchange.connection = None
            if connection.usable:
                connection.close()
        idle = self._idle.get(exchange.prepared.origin)
        if idle:
            idle.popitem()[0].send(exchange)
            return
        # Connections that may still be opened, less those that the waiting requests will take.
        room = self._limit - len(self._open) - len(self._waiting)
        if room <= 0 and not self._waiting and self._close_idle():
            room = 1
        if room > 0 and not self._waiting and self._opened_now < OPENED_PER_TURN:
            self._connect(exchange)
            return
        if room <= 0:
            self.capped += 1
        self._waiting.append(exchange)

    def _close_idle(self) -> bool:
        """Close an idle connection of any origin, so that another can be opened."""
        for idle in self._idle.values():
            if idle:
                next(iter(idle)).close()
                return True
        return False

    def _connect(self, exchange: Exchange) -> None:
        if not self._opened_now:
            self.loop.call_soon(self._next_turn)
        self._opened_now += 1
        connection = Connection(self, exchange.prepared.origin)
        self._open[connection] = None
        connection.open(exchange)

    def _next_turn(self) -> None:
        self._opened_now = 0
        while self._waiting and self._opened_now < OPENED_PER_TURN:
            idle = self._idle.get(self._waiting[0].prepared.origin)
            if idle:
                idle.popitem()[0].send(self._waiting.popleft())
                continue
            if len(self._open) >= self._limit and not self._close_idle():
                return
            self._connect(self._waiting.popleft())

    # Called by connections.

    def finished(self, connection: Connection, exchange: Exchange, keep: bool) -> None:
        """Take the connection back and hand the exchange to whoever waits for it."""
        if exchange.prepared.redirects:
            if exchange.status in REDIRECTS and exchange.error in OF_WHOLE_REPLIES:
                # The location is read before another request uses the connection.
                location = connection.location()
                self._release(connection, exchange, keep, sticky=False)
                self._redirect(exchange, location)
                return
            exchange.end_chain()
        self._release(connection, exchange, keep, self._sticky)
        exchange.finish(exchange)

    def _release(
        self, connection: Connection, exchange: Exchange, keep: bool, sticky: bool
    ) -> None:
        exchange.connection = None
        if not keep or self._life.closing:
            began_ns = time.monotonic_ns()
            connection.close()
            exchange.close_ns = time.monotonic_ns() - began_ns
            return
        # No other connection may be opened for requests that a user sends side by side.
        if sticky and not (self._waiting and len(self._open) >= self._limit):
            exchange.connection = connection
        elif self._waiting and self._waiting[0].prepared.origin == connection.origin:
            connection.send(self._waiting.popleft())
        else:
            self._idle.setdefault(connection.origin, {})[connection] = None
            if self._waiting:
                self._serve_waiting()

    def forget(self, connection: Connection) -> None:
        """Forget a closed connection; a waiting request may open another."""
        self._open.pop(connection, None)
        idle = self._idle.get(connection.origin)
        if idle is not None:
            idle.pop(connection, None)
            if not idle:  # redirects may lead to any number of origins
                del self._idle[connection.origin]
        if self._waiting:
            self._serve_waiting()

    def _serve_waiting(self) -> None:
        if not self._opened_now:
            self._opened_now = 1
            self.loop.call_soon(self._next_turn)

    def _redirect(self, exchange: Exchange, location: str) -> None:
        base = exchange.prepared
        if exchange.chain is None:
            exchange.chain = (base, exchange.sent_ns, exchange.connect_ns)
        exchange.redirects += 1
        head, _ = exchange.reply or (b"", b"")
        try:
            exchange.prepared = followed(
                base, location, exchange.redirects, self._life, self._allowed, head
            )
        except (TargetRefused, ValueError) as error:
            self.first_errors.note("redirect", str(error))
            self._give_up(exchange, "redirect")
            return
        exchange.error = exchange.status = 0
        self.submit(exchange)

    # Time and end.

    def _sweep(self) -> None:
        """Give up the requests that have taken longer than the timeout."""
        self._sweeper = self.loop.call_later(self._sweep_s, self._sweep)
        latest_start_ns = time.monotonic_ns() - self._timeout_ns
        late = [
            connection
            for connection in self._open
            if connection.exchange is not None and connection.exchange.started_ns < latest_start_ns
        ]
        for connection in late:
            connection.abort("timeout")
        # A request that follows a redirect stands behind others, and began before them.
        for exchange in [one for one in self._waiting if one.started_ns < latest_start_ns]:
            self._waiting.remove(exchange)
            self._give_up(exchange, "timeout")

    def _give_up(self, exchange: Exchange, kind: str) -> None:
        exchange.done_ns = time.monotonic_ns()
        exchange.error, exchange.phases = CODES[kind], None
        exchange.status = exchange.bytes = 0
        exchange.end_chain()
        exchange.finish(exchange)

    def give_up_waiting(self) -> None:
        """Give up the requests that wait for a connection (``unsent``)."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for exchange in waiting:
            self._give_up(exchange, "unsent")

    def abort(self) -> None:
        """Give up requests under way (``aborted``) and waiting ones (``unsent``)."""
        self.give_up_waiting()
        for connection in list(self._open):
            connection.abort("aborted")

    async def close(self) -> None:
        """Close every connection."""
        self._sweeper.cancel()
        self._waiting.clear()
        for connection in list(self._open):
            connection.exchange = None
            connection.close()


Client = LeanClient | LibraryClient


def make_client(
    workload: Workload,
    prepared: Prepared,
    connections: int,
    *,
    sticky: bool = False,
    allowed: Sequence[str] = (),
    beside: int = 0,
) -> Client:
    """Return a workload's client, which may open so many connections, its address looked up."""
    # Imported late: most loads do without these libraries, which take long to import.
    if workload.client == "aiohttp":
        from perflab.load.clients.aiohttp_client import AiohttpClient

        return AiohttpClient(workload, connections, prepared)
    if workload.client == "http2":
        from perflab.load.clients.http2_client import Http2Client

        return Http2Client(workload, connections, prepared)
    if workload.client == "httpx":
        from perflab.load.clients.httpx_client import HttpxClient

        return HttpxClient(workload, connections, prepared)
    lean = LeanClient(
        asyncio.get_running_loop(),
        workload.connections.model_copy(update={"most": connections}),
        workload.timeout_s,
        sticky=sticky,
        allowed=allowed,
        tls=workload.tls_context,
        beside=beside,
    )
    lean.address(prepared.origin)
    return lean
