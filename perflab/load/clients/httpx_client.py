"""httpx behind the interface of the lean client, over HTTP/1.1."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.library_client import LibraryClient, causes, headers_of
from perflab.load.workload.workload import Workload

OPENED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class HttpxClient(LibraryClient):
    """httpx's AsyncClient."""

    _kinds = (
        ((TimeoutError, httpx.TimeoutException), "timeout"),
        (httpx.ConnectError, "connect"),
        ((httpx.NetworkError, OSError), "reset"),
    )

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        super().__init__(workload, connections)
        self._origin = f"{prepared.origin.scheme}://{prepared.origin.authority}"
        self._client = httpx.AsyncClient(
            verify=workload.tls_context(),
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

        async def trace(event: str, information: Any) -> None:
            self._note(event, exchange, connect_began)
            if event in OPENED:
                self._watch(information["return_value"])

        async with self._client.stream(
            request.method,
            self._origin + request.path,
            content=body or None,
            headers=headers_of(request, body),
            extensions={"trace": trace},
        ) as response:
            encrypted = response.extensions["network_stream"].get_extra_info("ssl_object")
            await self._take(
                exchange, response.status_code, response.headers, response.aiter_raw(), encrypted
            )

    def _watch(self, stream: Any) -> None:
        """Note the first byte of each answer: a connection may end within the head."""
        read = stream.read

        async def noting(*words: Any, **options: Any) -> bytes:
            data: bytes = await read(*words, **options)
            task = asyncio.current_task()
            exchange = self._tasks.get(task) if task else None
            if data and exchange is not None:
                exchange.first_byte_ns = exchange.first_byte_ns or time.monotonic_ns()
            return data

        stream.read = noting

    def _note(self, event: str, exchange: Exchange, connect_began: list[int]) -> None:
        """Note the instant of an event of the library; its name begins with the protocol."""
        step = event.partition(".")[2]
        if step == "send_request_headers.complete":
            exchange.sent_ns = time.monotonic_ns()
        elif step == "receive_response_headers.complete":
            exchange.first_byte_ns = exchange.first_byte_ns or time.monotonic_ns()
        elif step == "connect_tcp.started":
            connect_began[0] = time.monotonic_ns()
        elif step == "connect_tcp.complete":
            exchange.connect_ns = time.monotonic_ns() - connect_began[0]

    def _class_of(self, error: Exception) -> str:
        for cause in causes(error):
            if isinstance(cause, socket.gaierror):
                return "dns"
            if isinstance(cause, ssl.SSLError):
                return "tls"
        if isinstance(error, httpx.RemoteProtocolError):
            text = str(error)
            if text.startswith("Server disconnected"):
                return "closed"
            if "buffer too long" in text:
                return "head_too_large"
            return "truncated" if "incomplete" in text or "without sending" in text else "protocol"
        return super()._class_of(error)

    async def _close(self) -> None:
        await self._client.aclose()
