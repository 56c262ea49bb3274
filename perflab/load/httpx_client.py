"""httpx behind the interface of the lean client: HTTP/1.1, and HTTP/2 with h2.

Each request is a task, as users of the library write it. Instants come from its own tracing hooks,
error classes from its exceptions. It is held to what the lean client does: a body is taken as it
comes and let go of, and no cookie is kept. Whether a server speaks HTTP/2 is asked before any load
is sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from itertools import cycle
from typing import Any

import httpx

from perflab.errors import LoadError, ParameterError
from perflab.load.body import Body
from perflab.load.exchange import Exchange
from perflab.load.head import parse_server_timing
from perflab.load.outcome import CODES, ERRORS, FirstErrors
from perflab.load.prepared import Prepared
from perflab.load.targets import Origin, addresses, split
from perflab.load.workload import Request, Scripted, Workload

# The client's preface and an empty SETTINGS frame (RFC 9113, 3.4).
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAME_HEAD_BYTES, SETTINGS = 9, 4
LONGEST_S = 5.0
clock = time.monotonic_ns


def headers_of(request: Request, body: str) -> dict[str, str]:
    """Return the headers to send, with a body's type where it has one."""
    # Bodies are counted and judged as they come: what is packed may be gigabytes unpacked.
    default = {"Accept-Encoding": "identity"}
    if body:
        default["Content-Type"] = "application/json"
    given = {name.lower() for name in request.headers}
    kept = {name: value for name, value in default.items() if name.lower() not in given}
    return {**kept, **request.headers}


class HttpxClient:
    """httpx's AsyncClient, a task per exchange: HTTP/1.1, or HTTP/2 over one connection."""

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
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
        self.timeout_s = workload.timeout_s
        self._bodies = cycle(workload.request.bodies)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        self._client = _made(workload, 0 if workload.connections.closing else connections)
        self._free = asyncio.Semaphore(connections)
        self._tasks: dict[asyncio.Task[None], Exchange] = {}

    def submit(self, exchange: Exchange) -> None:
        """Start a task that sends the request; see ``exchange.Client``."""
        self.capped += self._free.locked()
        task = asyncio.create_task(self._perform(exchange))
        self._tasks[task] = exchange

    async def _perform(self, exchange: Exchange) -> None:
        exchange.status = exchange.bytes = exchange.error = 0
        exchange.phases = None
        try:
            async with asyncio.timeout(self.timeout_s), self._free:
                await self._send(exchange)
        except asyncio.CancelledError:
            exchange.error = CODES["aborted" if exchange.sent_ns else "unsent"]
        except Exception as error:  # whatever the library raises is the outcome of this request
            kind = _class_of(error)
            exchange.error = CODES[kind]
            self.first_errors.note(kind, str(error) or type(error).__name__)
        if not exchange.done_ns or exchange.error:
            exchange.done_ns = clock()
        task = asyncio.current_task()
        if task is not None:
            self._tasks.pop(task, None)
        exchange.finish(exchange)

    async def _send(self, exchange: Exchange) -> None:
        request, body, began = exchange.prepared.request, next(self._bodies), [0]

        async def trace(event: str, _information: Any) -> None:
            self._note(event, exchange, began)

        async with self._client.stream(
            request.method,
            self._origin + request.path,
            content=body or None,
            headers=headers_of(request, body),
            extensions={"trace": trace},
        ) as response:
            await self._take(exchange, response)

    async def _take(self, exchange: Exchange, response: httpx.Response) -> None:
        """Read a response to its end, piece by piece, undecoded; let go of it."""
        prepared = exchange.prepared
        body = Body(prepared.wanted) if prepared.wanted is not None else None
        exchange.status = status = response.status_code
        async for piece in response.aiter_raw():
            exchange.bytes += len(piece)
            if body is not None:
                body.take(piece)
        exchange.done_ns = clock()
        exchange.error = prepared.judge(status, exchange.bytes, body)
        if exchange.error:
            text = f"HTTP status {status}, {exchange.bytes} bytes"
            self.first_errors.note(ERRORS[exchange.error], text, status)
        timing = response.headers.get("Server-Timing")
        exchange.phases = parse_server_timing(timing) if timing else None

    def _note(self, event: str, exchange: Exchange, began: list[int]) -> None:
        """Note the instant of an event that the library tells of, by whatever protocol."""
        what = event.partition(".")[2]
        if what == "send_request_headers.complete":
            exchange.sent_ns = clock()
        elif what == "receive_response_headers.complete":
            exchange.first_byte_ns = clock()
        elif what == "connect_tcp.started":
            began[0] = clock()
        elif what == "connect_tcp.complete":
            exchange.connect_ns = clock() - began[0]

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
        await self._client.aclose()


def _class_of(error: Exception) -> str:
    """Return the error class of what the library raised."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "dns"
        if isinstance(cause, ssl.SSLError):
            return "tls"
        cause = cause.__cause__ or cause.__context__
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


def _made(workload: Workload, kept: int) -> httpx.AsyncClient:
    """Return a client of the library; ``kept`` connections may idle."""
    context, http2 = workload.trust.context(), workload.client == "http2"
    return httpx.AsyncClient(
        http1=not http2,
        http2=http2,
        verify=only_http2(context) if http2 else context,
        timeout=None,
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=kept, keepalive_expiry=None
        ),
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def only_http2(context: ssl.SSLContext) -> ssl.SSLContext:
    """Let a context offer HTTP/2 alone: a server that may choose could choose HTTP/1.1."""
    context.set_alpn_protocols(["h2"])
    # httpx would offer both.
    ignored: Any = lambda _: None  # noqa: E731
    setattr(context, "set_alpn_protocols", ignored)  # noqa: B010
    return context


def ask_for_http2(url: str, workload: Workload) -> None:
    """Refuse a load over HTTP/2 to a server that does not speak it.

    Over TLS the server must choose ``h2`` by ALPN; without, it must answer HTTP/2's own begin
    (prior knowledge: there is no upgrade from HTTP/1.1).

    Raises
    ------
    LoadError
        It does not agree, cannot be reached, or the package h2 is missing.
    """
    if find_spec("h2") is None:
        raise LoadError("HTTP/2 needs the package h2: pip install 'perflab[http2]'")
    origin, _ = split(url)
    try:
        family, address = addresses(origin)[0]
        with socket.socket(family, socket.SOCK_STREAM) as opened:
            opened.settimeout(min(LONGEST_S, workload.timeout_s))
            opened.connect(address)
            if origin.encrypted:
                _by_alpn(opened, origin, workload)
            else:
                _by_its_begin(opened, origin)
    except OSError as error:
        raise LoadError(
            f"{origin.authority} could not be asked whether it speaks HTTP/2: "
            f"{error.strerror or error}; nothing was sent"
        ) from None


def _by_alpn(opened: socket.socket, origin: Origin, workload: Workload) -> None:
    context = workload.trust.context()
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(opened, server_hostname=origin.host) as encrypted:
            chosen = encrypted.selected_alpn_protocol()
    except ssl.SSLError as error:
        if "NO_APPLICATION_PROTOCOL" not in str(error):
            raise
        chosen = None
    if chosen != "h2":
        raise _refused(origin, "it did not choose h2 when TLS offered it (ALPN)")


def _by_its_begin(opened: socket.socket, origin: Origin) -> None:
    opened.sendall(HELLO)
    head = b""
    while len(head) < FRAME_HEAD_BYTES and (piece := opened.recv(FRAME_HEAD_BYTES - len(head))):
        head += piece
    if len(head) < FRAME_HEAD_BYTES or head[3] != SETTINGS or any(head[5:]):
        raise _refused(origin, "it did not answer HTTP/2's begin with its settings")


def _refused(origin: Origin, why: str) -> LoadError:
    return LoadError(
        f"{origin.authority} does not speak HTTP/2: {why}. Leave --http2 away, or let the server "
        "speak it; nothing was sent"
    )
