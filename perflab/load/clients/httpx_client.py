"""httpx behind the interface of the lean client: HTTP/1.1, and HTTP/2 with h2.

The server is asked whether it speaks HTTP/2 before any load is sent.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from typing import Any

import httpx

from perflab.errors import LoadError
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.library_client import LibraryClient, causes, clock, headers_of
from perflab.load.clients.targets import Origin, addresses, split
from perflab.load.workload.workload import Workload

# The client's preface and an empty SETTINGS frame (RFC 9113, 3.4).
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAME_HEAD_BYTES, SETTINGS = 9, 4
LONGEST_S = 5.0


class HttpxClient(LibraryClient):
    """httpx's AsyncClient: HTTP/1.1, or HTTP/2 over one connection."""

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        http2 = workload.client == "http2"
        self._client = httpx.AsyncClient(
            http1=not http2,
            http2=http2,
            verify=_only_http2(workload) if http2 else workload.trust.context(),
            timeout=None,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=0 if workload.connections.closing else connections,
                keepalive_expiry=None,
            ),
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        request, connect_began = exchange.prepared.request, [0]

        async def trace(event: str, _information: Any) -> None:
            self._note(event, exchange, connect_began)

        async with self._client.stream(
            request.method,
            self._origin + request.path,
            content=body or None,
            headers=headers_of(request, body),
            extensions={"trace": trace},
        ) as response:
            await self._take(exchange, response.status_code, response.headers, response.aiter_raw())

    def _note(self, event: str, exchange: Exchange, connect_began: list[int]) -> None:
        """Note the instant of an event of the library; its name begins with the protocol."""
        step = event.partition(".")[2]
        if step == "send_request_headers.complete":
            exchange.sent_ns = clock()
        elif step == "receive_response_headers.complete":
            exchange.first_byte_ns = clock()
        elif step == "connect_tcp.started":
            connect_began[0] = clock()
        elif step == "connect_tcp.complete":
            exchange.connect_ns = clock() - connect_began[0]

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


class _OnlyHttp2(ssl.SSLContext):
    """Offers HTTP/2 alone; httpx offers both, and a server could choose HTTP/1.1."""

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:  # noqa: ARG002
        super().set_alpn_protocols(["h2"])


def _only_http2(workload: Workload) -> ssl.SSLContext:
    usual, context = workload.trust.context(), _OnlyHttp2(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = usual.check_hostname, usual.verify_mode
    context.verify_flags = usual.verify_flags
    if workload.ca_file:
        context.load_verify_locations(workload.ca_file)
    else:
        context.load_default_certs()
    return context


def ask_for_http2(url: str, workload: Workload) -> None:
    """Raise LoadError for a server that does not speak HTTP/2, or without the package h2.

    Over TLS the server must choose ``h2`` by ALPN; without TLS it must answer HTTP/2's connection
    preface (prior knowledge: there is no upgrade from HTTP/1.1).
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
                _by_preface(opened, origin)
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


def _by_preface(opened: socket.socket, origin: Origin) -> None:
    opened.sendall(HELLO)
    head = b""
    while len(head) < FRAME_HEAD_BYTES and (piece := opened.recv(FRAME_HEAD_BYTES - len(head))):
        head += piece
    if len(head) < FRAME_HEAD_BYTES or head[3] != SETTINGS or any(head[5:]):
        raise _refused(origin, "it did not answer HTTP/2's begin with its settings")


def _refused(origin: Origin, why: str) -> LoadError:
    return LoadError(
        f"{origin.authority} does not speak HTTP/2: {why}. Remove --http2, or let the server "
        "speak it; nothing was sent"
    )
