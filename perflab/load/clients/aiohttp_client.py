"""aiohttp behind the interface of the lean client, so that clients can be compared."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_parser import RawResponseMessage

from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.library_client import (
    LibraryClient,
    causes,
    headers_of,
    is_ended_by_closing,
)
from perflab.load.workload.workload import Workload

NEVER_S = 86_400.0


class _Response(aiohttp.ClientResponse):
    """A response that keeps what tells how its data ended: aiohttp drops it with the last byte."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head."""
        assert connection.protocol is not None
        self._started, transport = connection.protocol, connection.transport
        self.encrypted = transport.get_extra_info("ssl_object") if transport else None
        return await super().start(connection)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body; raise for a reset that aiohttp takes for its end."""
        cut_short = None
        try:
            async for piece in self.content.iter_any():
                yield piece
        except aiohttp.ClientPayloadError as error:
            cut_short = error
        if cut_short or is_ended_by_closing(self.status, self.headers):
            lost = self._started.exception()
            if isinstance(lost, OSError):
                raise lost
        if cut_short:
            raise cut_short


class AiohttpClient(LibraryClient):
    """aiohttp's ClientSession."""

    _kinds = (
        (TimeoutError, "timeout"),
        (aiohttp.ClientConnectorDNSError, "dns"),
        ((aiohttp.ClientSSLError, ssl.SSLError), "tls"),
        (aiohttp.ClientConnectorError, "connect"),
        (aiohttp.ServerDisconnectedError, "closed"),
        (aiohttp.ClientPayloadError, "truncated"),
        (OSError, "reset"),
    )

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        closing = workload.connections.closing
        connector = aiohttp.TCPConnector(
            limit=0,
            force_close=closing,
            # By default aiohttp closes a connection that is idle for 15 s.
            keepalive_timeout=None if closing else NEVER_S,
            ssl=workload.tls_context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            response_class=_Response,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[_tracing()],
        )

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        request = exchange.prepared.request
        # No context manager: its exit waits for the connection to close, which would delay the
        # user's next request. Reading to the end releases the connection as well.
        response = await self._session.request(
            request.method,
            self._origin + request.path,
            data=body or None,
            headers=headers_of(request, body),
            allow_redirects=False,
            trace_request_ctx=exchange,
        )
        exchange.first_byte_ns = time.monotonic_ns()
        try:
            assert isinstance(response, _Response)
            await self._take(
                exchange, response.status, response.headers, response.pieces(), response.encrypted
            )
        except BaseException:
            response.close()
            raise

    def _class_of(self, error: Exception) -> str:
        if any(
            isinstance(cause, LineTooLong) or "Too many headers" in str(cause)
            for cause in causes(error)
        ):
            return "head_too_large"
        message = getattr(error, "message", "")
        if isinstance(message, RawResponseMessage):  # the part of the head that had come
            return "truncated"
        return super()._class_of(error)

    async def _close(self) -> None:
        await self._session.close()


async def _note_sent(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx.sent_ns = time.monotonic_ns()


async def _note_connect_start(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.connect_began_ns = time.monotonic_ns()


async def _note_connect_end(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx.connect_ns = time.monotonic_ns() - context.connect_began_ns


def _tracing() -> aiohttp.TraceConfig:
    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_note_sent)
    tracing.on_connection_create_start.append(_note_connect_start)
    tracing.on_connection_create_end.append(_note_connect_end)
    return tracing
