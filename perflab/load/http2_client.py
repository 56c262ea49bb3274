"""HTTP/2 by httpx and h2, behind the interface of the lean client."""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import cycle
from typing import Any

import httpx

from perflab.load.client import DEFAULT_CONNECTIONS
from perflab.load.exchange import Exchange
from perflab.load.httpx_client import HttpxClient
from perflab.load.library_client import clock
from perflab.load.prepared import Prepared
from perflab.load.workload import Request, Workload

# As many as httpx has on a connection, whatever the server allows; what is beyond that waits.
STREAMS_PER_CONNECTION = 100


class Lane:
    """One connection, and how many requests are under way on it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.streams = 0


class Http2Client(HttpxClient):
    """httpx's AsyncClient, HTTP/2 alone: all requests share a few connections.

    There is one connection for each worker, or as many as the workload's cap names; requests take
    them in turn. ``most_streams`` is the largest number of requests that were under way at a time
    on one of them.
    """

    def __init__(self, workload: Workload, connections: int, prepared: Prepared) -> None:
        lanes = connections if workload.connections.most else 1
        allowed = lanes * STREAMS_PER_CONNECTION if workload.connections.most else connections
        super().__init__(workload, min(allowed, DEFAULT_CONNECTIONS), prepared)
        others = (self._made(workload, connections) for _ in range(lanes - 1))
        self._lanes = [Lane(client) for client in (self._client, *others)]
        self._turn = cycle(self._lanes)

    def _made(self, workload: Workload, _connections: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            http1=False,
            http2=True,
            verify=only_http2(workload.trust.context()),
            timeout=None,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=None
            ),
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def _send(self, exchange: Exchange, request: Request) -> None:
        lane = next(self._turn)
        lane.streams += 1
        self.most_streams = max(self.most_streams, lane.streams)
        try:
            await self._over(lane.client, exchange, request)
        finally:
            lane.streams -= 1

    def _note(self, event: str, exchange: Exchange, began: list[int]) -> None:
        if event == "http2.send_request_headers.complete":
            exchange.sent_ns = clock()
        elif event == "http2.receive_response_headers.complete":
            exchange.first_byte_ns = clock()
        else:
            super()._note(event, exchange, began)

    async def _close(self) -> None:
        for lane in self._lanes:
            await lane.client.aclose()


def only_http2(context: ssl.SSLContext) -> ssl.SSLContext:
    """Let a context offer HTTP/2 alone: a server that may choose could choose HTTP/1.1."""
    context.set_alpn_protocols(["h2"])
    # httpx would offer both.
    ignored: Any = lambda _: None  # noqa: E731
    setattr(context, "set_alpn_protocols", ignored)  # noqa: B010
    return context
