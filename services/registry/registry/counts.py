"""What the service counts since its start or its last reset."""

from __future__ import annotations

import queue
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool
from specimen import counts

Message = MutableMapping[str, Any]


class BrokenOff(Exception):
    """An answer that has begun cannot be ended as it said."""


@dataclass
class Counts(counts.Counts):
    """Downloads, work that waits for a thread or has one, and connections to the store."""

    completed: int = 0
    redirected: int = 0
    bytes_read: int = 0
    waiting_for_thread: int = 0
    most_waiting_for_thread: int = 0
    working_threads: int = 0
    most_working_threads: int = 0
    store_created: int = 0
    store_discarded: int = 0


class Counting:
    """ASGI middleware that counts downloads, and ends those that were broken off."""

    def __init__(self, app: Callable[..., Awaitable[None]], counts: Counts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not scope["path"].startswith("/performance/"):
            await self._app(scope, receive, send)
            return
        status = left = 0

        async def send_counted(message: Message) -> None:
            nonlocal status, left
            if message["type"] == "http.response.start":
                status = message["status"]
                left = int(dict(message["headers"]).get(b"content-length", 0))
            await send(message)
            left -= len(message.get("body", b""))

        self._counts.add(open=1)
        try:
            await self._app(scope, receive, send_counted)
        except BrokenOff:
            # The server ends the connection of an answer that is shorter than it said.
            pass
        finally:
            whole = {200: "completed", 307: "redirected"}.get(status) if left == 0 else None
            self._counts.add(open=-1, **({whole: 1} if whole else {}))


def count_connections(client: Any, counts: Counts) -> None:
    """Let the connections of a boto3 client be counted, from its first one on.

    urllib3's warning "Connection pool is full, discarding connection" is where the queue refuses
    one. botocore gives no other way to its pools' classes: they are attributes of its session.
    """

    class Connection(AWSHTTPConnection):
        def connect(self) -> None:
            super().connect()
            counts.add(store_created=1)

    class Idle(queue.LifoQueue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            try:
                super().put(item, block, timeout)
            except queue.Full:
                if item is not None:
                    counts.add(store_discarded=1)
                raise

    class Pool(AWSHTTPConnectionPool):
        ConnectionCls = Connection
        QueueCls = Idle

    client._endpoint.http_session._pool_classes_by_scheme["http"] = Pool
