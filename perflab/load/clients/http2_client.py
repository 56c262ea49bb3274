"""HTTP/2 behind the interface of the lean client: the requests of a worker share a connection.

What a server has surely not begun goes out again, whatever its method, and its response time goes
on: see :mod:`~perflab.load.clients.http2_connection`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakSet

from perflab.errors import LoadError
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.http2_connection import Connection, Head, NotBegun, connect
from perflab.load.clients.library_client import LibraryClient, headers_of
from perflab.load.clients.outcome import Failed
from perflab.load.clients.targets import Origin, split
from perflab.load.workload.request import Request
from perflab.load.workload.workload import Workload

LONGEST_S = 5.0
MOST_TRIES = 10


def tls_of(workload: Workload, origin: Origin) -> ssl.SSLContext | None:
    """Return a context that offers HTTP/2 alone; None for an origin without TLS."""
    if not origin.encrypted:
        return None
    context = workload.tls_context()
    context.set_alpn_protocols(["h2"])
    return context


def ask_for_http2(url: str, workload: Workload) -> None:
    """Raise LoadError for a server that does not speak HTTP/2."""
    origin, _ = split(url)

    async def ask() -> None:
        async with asyncio.timeout(min(LONGEST_S, workload.timeout_s)):
            (await connect(origin, tls_of(workload, origin))).close()

    # A notebook's kernel has a running loop already.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(asyncio.run, ask()).result()
        except (OSError, Failed) as error:
            why = str(error) or type(error).__name__
            raise LoadError(
                f"{origin.authority} does not answer over HTTP/2 ({why}): "
                "remove --http2, or let the server speak it; no load was sent"
            ) from None


class Http2Client(LibraryClient):
    """Sends over one connection, and over a new one when the server ends it."""

    _kinds = ((TimeoutError, "timeout"), (socket.gaierror, "dns"), (ssl.SSLError, "tls"),
              (OSError, "connect"))  # fmt: skip

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = prepared.origin
        self._tls = tls_of(workload, prepared.origin)
        self._connections: WeakSet[Connection] = WeakSet()
        self._usable: Connection | None = None
        self._opening = asyncio.Lock()

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        head = self._head(exchange.prepared.request, body)
        tries = 0
        while tries < MOST_TRIES:
            connection = await self._connection(exchange)
            self.capped += connection.is_full()
            exchange.sent_ns = 0
            try:
                async with connection.request(exchange, head, body) as reply:
                    await reply.begun()
                    status = int(reply.head[":status"])
                    await self._take(exchange, status, reply.head, reply.pieces(), None)
                return
            except NotBegun:
                was_sent = exchange.sent_ns > 0
                tries += was_sent
                self.resent += was_sent
        raise Failed("protocol", f"the server refused the request {MOST_TRIES} times")

    def _head(self, request: Request, body: bytes) -> Head:
        headers = {name.lower(): value for name, value in headers_of(request, body).items()}
        if body or request.method in ("POST", "PUT", "PATCH"):
            headers.setdefault("content-length", str(len(body)))
        first = {
            ":method": request.method,
            ":authority": headers.pop("host", self._origin.authority),
            ":scheme": self._origin.scheme,
            ":path": request.path,
        }
        return [*first.items(), *headers.items()]

    async def _connection(self, exchange: Exchange) -> Connection:
        async with self._opening:
            if self._usable is None or self._usable.is_leaving:
                began_ns = time.monotonic_ns()
                self._usable = await connect(self._origin, self._tls)
                exchange.connect_ns = time.monotonic_ns() - began_ns
                self._connections.add(self._usable)
            return self._usable

    async def _close(self) -> None:
        for connection in list(self._connections):
            connection.close()
