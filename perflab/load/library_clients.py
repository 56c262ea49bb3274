"""aiohttp and httpx behind the interface of the lean client, so that clients can be compared.

Each request is a task, as users of these libraries write it. Instants come from the libraries'
own tracing hooks, error classes from their exceptions.

They are held to what the lean client does: a body is taken as it comes, undecoded, and let go of;
no cookie is kept.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import cycle
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import StreamReader

from perflab.errors import ParameterError
from perflab.load.body import Body
from perflab.load.client import Client
from perflab.load.exchange import Exchange
from perflab.load.first_errors import FirstErrors
from perflab.load.outcome import CODES, ERRORS
from perflab.load.payload import FileBody, OpenFiles, content_of, length_of, usual_type
from perflab.load.prepared import Prepared, fill
from perflab.load.response import MAX_INTERIMS, parse_server_timing
from perflab.load.room import Room
from perflab.load.sending import TLS_PIECE_BYTES, FileChanged
from perflab.load.workload import Request, Scripted, Workload

NEVER_S = 86_400.0
clock = time.monotonic_ns


class LibraryClient:
    """What the two have in common: a task per exchange, a cap, and one end for each."""

    def __init__(self, workload: Workload, connections: int) -> None:
        if workload.request.redirects:
            raise ParameterError(
                "workload", [f"the {workload.client} client does not follow redirects here"]
            )
        if isinstance(workload.arrivals, Scripted):
            raise ParameterError(
                "workload", [f"scripted users have the lean client, not {workload.client}"]
            )
        self.capped = 0
        self.first_errors = FirstErrors()
        self._room = Room()
        self._files = OpenFiles()
        self.timeout_s = workload.timeout_s
        self._rows = cycle(fill(workload.request, workload.request.data))
        self._free = asyncio.Semaphore(connections)
        self._tasks: dict[asyncio.Task[None], Exchange] = {}

    def submit(self, exchange: Exchange) -> None:
        """Start a task that sends the request; see ``client.Client``."""
        self.capped += self._free.locked()
        task = asyncio.create_task(self._perform(exchange, next(self._rows)))
        self._tasks[task] = exchange

    async def _perform(self, exchange: Exchange, request: Request) -> None:
        exchange.status = exchange.bytes = exchange.error = 0
        exchange.phases = None
        try:
            async with asyncio.timeout(self.timeout_s), self._free:
                await self._send(exchange, request)
        except asyncio.CancelledError:
            exchange.error = CODES["aborted" if exchange.sent_ns else "unsent"]
        except Exception as error:  # whatever a library raises is the outcome of this request
            changed = any(isinstance(cause, FileChanged) for cause in causes(error))
            kind = "body_file" if changed else self._class_of(error)
            exchange.error = CODES[kind]
            self.first_errors.note(kind, str(error) or type(error).__name__)
        if not exchange.done_ns or exchange.error:
            exchange.done_ns = clock()
        task = asyncio.current_task()
        if task is not None:
            self._tasks.pop(task, None)
        exchange.finish(exchange)

    async def _send(self, exchange: Exchange, request: Request) -> None:
        raise NotImplementedError

    @staticmethod
    def _class_of(error: Exception) -> str:
        raise NotImplementedError

    async def _take(
        self,
        exchange: Exchange,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterable[bytes],
    ) -> None:
        """Read a response to its end, piece by piece."""
        prepared = exchange.prepared
        body = Body(prepared.wanted, self._room) if prepared.wanted is not None else None
        exchange.status = status
        async for piece in pieces:
            exchange.bytes += len(piece)
            if body is not None:
                body.take(piece)
        exchange.done_ns = clock()
        exchange.error = prepared.judge(status, exchange.bytes, body)
        if exchange.error:
            text = f"HTTP status {status}, {exchange.bytes} bytes"
            self.first_errors.note(ERRORS[exchange.error], text, status)
        timing = headers.get("Server-Timing")
        exchange.phases = parse_server_timing(timing) if timing else None

    def give_up_waiting(self) -> None:
        """Cancel what was not sent yet; each ends as ``unsent``."""
        # A task that has not begun could not tell of its end: in the next turn all have.
        asyncio.get_running_loop().call_soon(self._cancel_unsent)

    def _cancel_unsent(self) -> None:
        for task, exchange in list(self._tasks.items()):
            if not exchange.sent_ns:
                task.cancel()

    def abort(self) -> None:
        """Cancel what is under way; each ends as ``aborted``, or ``unsent``."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel what is under way and close every connection."""
        self.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close()
        self._files.close()

    async def _close(self) -> None:
        raise NotImplementedError


class _OneAnswer(ResponseHandler):
    """aiohttp's, which takes interim responses (1xx) without number, and queues every one."""

    _interims = 0

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        self._interims = self._interims + 1 if data[0].code < 200 else 0
        if self._interims <= MAX_INTERIMS:
            super().feed_data(data, size)
        elif self.exception() is None:
            reason = f"more than {MAX_INTERIMS} interim responses"
            self.set_exception(HttpProcessingError(message=reason))
            self.force_close()
            if self.transport is not None:
                self.transport.abort()


class AiohttpClient(LibraryClient):
    """aiohttp's ClientSession."""

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        life = workload.connections
        closing = life.requests == 1
        connector = aiohttp.TCPConnector(
            limit=0,
            force_close=closing,
            # Its own default, 15 s, would be another life cycle than was asked for.
            keepalive_timeout=None if closing else life.idle_s or NEVER_S,
            ssl=tls(workload),
        )
        connector._factory = cast(Any, partial(_OneAnswer, asyncio.get_running_loop()))
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[_tracing()],
        )

    async def _send(self, exchange: Exchange, request: Request) -> None:
        # No context manager: its exit waits for the connection to close, which would delay
        # the user's next request; reading to the end releases the connection as well.
        response = await self._session.request(
            request.method,
            self._origin + request.path,
            data=_content(request, self._files),
            headers=_headers(request),
            allow_redirects=False,
            trace_request_ctx=exchange,
        )
        exchange.first_byte_ns = clock()
        try:
            await self._take(
                exchange, response.status, response.headers, response.content.iter_any()
            )
        except BaseException:
            response.close()
            raise

    @staticmethod
    def _class_of(error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "timeout"
        if any(
            isinstance(cause, LineTooLong) or "Too many headers" in str(cause)
            for cause in causes(error)
        ):
            return "head_too_large"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return "dns"
        if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
            return "tls"
        if isinstance(error, aiohttp.ClientConnectorError):
            return "connect"
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "closed"
        if isinstance(error, aiohttp.ClientPayloadError):
            return "truncated"
        if isinstance(error, OSError):
            return "reset"
        return "protocol"

    async def _close(self) -> None:
        await self._session.close()


async def _note_sent(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx.sent_ns = clock()


async def _note_connect_start(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.connect_began_ns = clock()


async def _note_connect_end(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx.connect_ns = clock() - context.connect_began_ns


def _tracing() -> aiohttp.TraceConfig:
    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_note_sent)
    tracing.on_connection_create_start.append(_note_connect_start)
    tracing.on_connection_create_end.append(_note_connect_end)
    return tracing


class HttpxClient(LibraryClient):
    """httpx's AsyncClient, HTTP/1.1."""

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        keep_alive = 0 if workload.connections.requests else connections
        self._client = httpx.AsyncClient(
            verify=tls(workload),
            timeout=None,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=keep_alive,
                keepalive_expiry=None,
            ),
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def _send(self, exchange: Exchange, request: Request) -> None:
        began: list[int] = [0]

        async def trace(event: str, _information: Any) -> None:
            if event == "http11.send_request_headers.complete":
                exchange.sent_ns = clock()
            elif event == "http11.receive_response_headers.complete":
                exchange.first_byte_ns = clock()
            elif event == "connection.connect_tcp.started":
                began[0] = clock()
            elif event == "connection.connect_tcp.complete":
                exchange.connect_ns = clock() - began[0]

        async with self._client.stream(
            request.method,
            self._origin + request.path,
            content=_content(request, self._files),
            headers=_headers(request),
            extensions={"trace": trace},
        ) as response:
            await self._take(exchange, response.status_code, response.headers, response.aiter_raw())

    @staticmethod
    def _class_of(error: Exception) -> str:
        for cause in causes(error):
            if isinstance(cause, socket.gaierror):
                return "dns"
            if isinstance(cause, ssl.SSLError):
                return "tls"
        if isinstance(error, (TimeoutError, httpx.TimeoutException)):
            return "timeout"
        if isinstance(error, httpx.ConnectError):
            return "connect"
        if isinstance(error, httpx.RemoteProtocolError):
            text = str(error)
            if "without sending a response" in text:
                return "closed"
            if "buffer too long" in text:
                return "head_too_large"
            return "truncated" if "incomplete" in text or "without sending" in text else "protocol"
        if isinstance(error, (httpx.NetworkError, OSError)):
            return "reset"
        return "protocol"

    async def _close(self) -> None:
        await self._client.aclose()


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those it came of."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _headers(request: Request) -> dict[str, str]:
    # Bodies are counted and judged as they come: what is packed may be gigabytes unpacked.
    default = {"Accept-Encoding": "identity"}
    if length := length_of(request.body):
        # With a length, neither library falls back on chunks.
        default |= {"Content-Type": usual_type(request.body), "Content-Length": str(length)}
    given = {name.lower() for name in request.headers}
    kept = {name: value for name, value in default.items() if name.lower() not in given}
    return {**kept, **request.headers}


def _content(request: Request, files: OpenFiles) -> bytes | AsyncIterator[bytes] | None:
    body = request.body
    if isinstance(body, FileBody) and body.size_bytes:
        return _pieces(files.descriptor(body), body.size_bytes)
    return content_of(body) or None


async def _pieces(descriptor: int, size: int) -> AsyncIterator[bytes]:
    place = 0
    while place < size:
        piece = os.pread(descriptor, min(TLS_PIECE_BYTES, size - place), place)
        if not piece:
            raise FileChanged(f"the body's file ended after {place} of {size} bytes")
        place += len(piece)
        yield piece


def tls(workload: Workload) -> ssl.SSLContext:
    """Return the TLS context that a workload asks for."""
    context = ssl.create_default_context(cafile=workload.ca_file or None)
    if not workload.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


CLIENTS = {"aiohttp": AiohttpClient, "httpx": HttpxClient}


def make(workload: Workload, connections: int, prepared: Prepared) -> Client:
    """Return the library client that a workload names."""
    return CLIENTS[workload.client](workload, connections, prepared)
