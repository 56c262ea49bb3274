"""httpx behind the interface of the lean client, so that clients can be compared."""

from __future__ import annotations

import socket
import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from perflab.load.exchange import Exchange
from perflab.load.library_client import LibraryClient, causes, clock, headers_of
from perflab.load.prepared import Prepared
from perflab.load.workload import Request, Workload


class HttpxClient(LibraryClient):
    """httpx's AsyncClient, HTTP/1.1."""

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        self._client = self._made(workload, connections)

    def _made(self, workload: Workload, connections: int) -> httpx.AsyncClient:
        keep_alive = 0 if workload.connections.closing else connections
        return httpx.AsyncClient(
            verify=workload.trust.context(),
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
        await self._over(self._client, exchange, request)

    async def _over(self, client: httpx.AsyncClient, exchange: Exchange, request: Request) -> None:
        began: list[int] = [0]

        async def trace(event: str, _information: Any) -> None:
            self._note(event, exchange, began)

        async with client.stream(
            request.method,
            self._origin + request.path,
            content=request.content or None,
            headers=headers_of(request),
            extensions={"trace": trace},
        ) as response:
            await self._take(exchange, response.status_code, response.headers, response.aiter_raw())

    def _note(self, event: str, exchange: Exchange, began: list[int]) -> None:
        """Note the instant of an event that the library tells of."""
        if event == "http11.send_request_headers.complete":
            exchange.sent_ns = clock()
        elif event == "http11.receive_response_headers.complete":
            exchange.first_byte_ns = clock()
        elif event == "connection.connect_tcp.started":
            began[0] = clock()
        elif event == "connection.connect_tcp.complete":
            exchange.connect_ns = clock() - began[0]

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
