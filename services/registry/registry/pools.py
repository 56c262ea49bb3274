"""urllib3's connection pool, with its connections counted where they are made and thrown away.

The warning "Connection pool is full, discarding connection" is where the queue refuses one.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import asdict, dataclass
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool


@dataclass
class Tally:
    """Connections to the store since the last reset: made, and thrown away by a full pool."""

    created: int = 0
    discarded: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        """Count one more, from any thread."""
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)

    def clear(self) -> None:
        """Count from zero."""
        with self._lock:
            self.created = self.discarded = 0

    def shown(self) -> dict[str, int]:
        """Return the numbers."""
        return asdict(self)


def count(client: Any, tally: Tally) -> None:
    """Let the connections of a boto3 client be counted, from its first one on.

    botocore gives no other way to the classes of its pools: they are attributes of its session.
    """

    class Connection(AWSHTTPConnection):
        def connect(self) -> None:
            super().connect()
            tally.add("created")

    class Idle(queue.LifoQueue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            try:
                super().put(item, block, timeout)
            except queue.Full:
                if item is not None:
                    tally.add("discarded")
                raise

    class Pool(AWSHTTPConnectionPool):
        ConnectionCls = Connection
        QueueCls = Idle

    client._endpoint.http_session._pool_classes_by_scheme["http"] = Pool
