"""The client that a worker sends its part of a load with."""

from __future__ import annotations

import asyncio

from perflab.load.client import DEFAULT_CONNECTIONS, LeanClient
from perflab.load.clients import Client
from perflab.load.cookie_client import CookieClient
from perflab.load.order import Order, share
from perflab.load.prepared import Prepared
from perflab.load.workload import ClosedLoop, Scripted


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
            certificate=workload.certificate,
            # A user's WebSocket is open while its connection for requests is kept alive.
            beside=share(users, order.worker, order.workers) if is_scripted else 0,
        )
        lean.resolve(prepared.origin)
        return lean
    from perflab.load.library_clients import make

    return make(workload, limit, prepared)
