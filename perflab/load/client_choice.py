"""What every client of load does, and the one that a worker sends its part of a load with."""

from __future__ import annotations

import asyncio
from typing import Protocol

from perflab.load.aiohttp_client import AiohttpClient
from perflab.load.client import DEFAULT_CONNECTIONS, LeanClient
from perflab.load.cookie_client import CookieClient
from perflab.load.exchange import Exchange
from perflab.load.http2_client import Http2Client
from perflab.load.httpx_client import HttpxClient
from perflab.load.order import Order, share
from perflab.load.outcome import FirstErrors
from perflab.load.prepared import Prepared
from perflab.load.workload import ClosedLoop, Scripted, Workload

CLIENTS = {"aiohttp": AiohttpClient, "httpx": HttpxClient, "http2": Http2Client}


class Client(Protocol):
    """What every client does: take an exchange, fill it in, call its ``finish``."""

    first_errors: FirstErrors
    timeout_s: float
    # Over HTTP/2: the most requests that were under way at a time on one connection.
    most_streams: int

    def submit(self, exchange: Exchange) -> None:
        """Send the request of an exchange whose ``planned_ns`` and ``started_ns`` are set."""

    def give_up_waiting(self) -> None:
        """Give up what waits for a connection (``unsent``)."""

    def abort(self) -> None:
        """Give up what is under way (``aborted``) and what waits (``unsent``)."""

    async def close(self) -> None:
        """Close every connection."""

    @property
    def capped(self) -> int:
        """Return how many requests waited because of the cap on connections."""


def make(workload: Workload, connections: int, prepared: Prepared) -> Client:
    """Return the library client that a workload names."""
    return CLIENTS[workload.client](workload, connections, prepared)


def make_client(order: Order, loop: asyncio.AbstractEventLoop, prepared: Prepared) -> Client:
    """Return the client a workload asks for, with addresses looked up."""
    workload = order.workload
    arrivals = workload.arrivals
    users = arrivals.users if isinstance(arrivals, (ClosedLoop, Scripted)) else 0
    is_scripted = isinstance(arrivals, Scripted)
    if isinstance(arrivals, Scripted) and arrivals.monitor:
        users += 1
    life = workload.connections
    limit = max(1, share(life.most or users or DEFAULT_CONNECTIONS, order.worker, order.workers))
    if workload.client == "lean":
        kind = CookieClient if workload.cookies else LeanClient
        lean = kind(
            loop,
            life.part(limit, order.workers),
            workload.timeout_s,
            sticky=bool(users) and not life.most,
            allowed=order.allowed,
            verify_tls=workload.verify_tls,
            ca_file=workload.ca_file,
            # A user's WebSocket is open while its connection for requests is kept alive.
            beside=share(users, order.worker, order.workers) if is_scripted else 0,
        )
        lean.resolve(prepared.origin)
        return lean
    from perflab.load.client_choice import make

    return make(workload, limit, prepared)
