"""urllib3's connection pool, with its connections counted where they are made and dropped.

The warning "Connection pool is full, discarding connection" is where :class:`_Queue` refuses one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from socket import SHUT_RDWR
from typing import Any, ClassVar, Protocol

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)


@dataclass
class Tally:
    """Connections to one place: open now, and made, thrown away and used since the last reset."""

    open: int = 0
    created: int = 0
    discarded: int = 0
    requests: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, name: str, step: int = 1) -> None:
        """Count one more, or less, from any thread."""
        with self._lock:
            setattr(self, name, getattr(self, name) + step)

    def clear(self) -> None:
        """Count from zero; what is open stays open."""
        with self._lock:
            self.created = self.discarded = self.requests = 0

    def shown(self) -> dict[str, int]:
        """Return the numbers."""
        return asdict(self)


class Borrower(Protocol):
    """Who a connection is taken for; ``gone`` once nobody waits for its bytes any more."""

    gone: bool

    def takes(self, cut: Callable[[], None]) -> None:
        """Take note of how the connection can be cut; raise when there is no need of it."""


borrower: ContextVar[Borrower | None] = ContextVar("borrower", default=None)


class _Queue(queue.LifoQueue[Any]):
    """The pool's queue of idle connections, which says so when it is full."""

    tally: Tally | None = None

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        try:
            super().put(item, block, timeout)
        except queue.Full:
            if item is not None and self.tally is not None:
                self.tally.add("discarded")
            raise


class _Counted:
    """A connection that counts while it is open.

    Where a store ends the connection after its answer, http.client lets go of it as soon as it has
    the head: the answer alone has its socket then, which is still to be counted and cut.
    """

    tally: ClassVar[Tally]
    loan: Loan | None = None
    own_socket: Any = None
    _is_counted = False
    _is_answered = False

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self.own_socket = self.sock  # type: ignore[attr-defined]
        self.tally.add("created")
        self.tally.add("open")
        self._is_counted = True

    def getresponse(self) -> Any:
        self._is_answered = True
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            self._is_answered = False

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        if not self._is_answered:
            self.settle()

    def settle(self) -> None:
        """Count it as gone where nothing has its socket any more."""
        if self._is_counted and self.sock is None:  # type: ignore[attr-defined]
            self._is_counted = False
            self.own_socket = None
            self.tally.add("open", -1)


class Loan:
    """A connection while one borrower has it: afterwards it is another's, and not to be cut."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.was_cut = False

    def cut(self) -> None:
        """End the connection under whoever waits for its bytes in another thread."""
        with self._lock:
            sock = getattr(self._connection, "own_socket", None)
            if sock is not None:
                self.was_cut = True
                with suppress(OSError):
                    sock.shutdown(SHUT_RDWR)

    def end(self) -> None:
        """Take note that the connection went back."""
        with self._lock:
            self._connection = None


class _Lending:
    """A pool that tells each borrower how to cut the connection that it gets."""

    tally: ClassVar[Tally]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.pool.tally = self.tally  # type: ignore[attr-defined]

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        self.tally.add("requests")
        taker = borrower.get()
        if taker is not None:
            connection.loan = Loan(connection)
            try:
                taker.takes(connection.loan.cut)
            except BaseException:
                self._put_conn(connection)
                raise
        return connection

    def _put_conn(self, connection: Any) -> None:
        if connection is not None:
            if connection.loan is not None:
                connection.loan.end()
                if connection.loan.was_cut:
                    connection.close()
                connection.loan = None
            connection.settle()
        super()._put_conn(connection)  # type: ignore[misc]


def count(client: Any, tally: Tally) -> None:
    """Let the connections of a boto3 client be counted, from its first one on.

    botocore gives no other way to the classes of its pools: they are attributes of its session.
    """
    session = client._endpoint.http_session
    kinds = {
        "http": (AWSHTTPConnectionPool, AWSHTTPConnection),
        "https": (AWSHTTPSConnectionPool, AWSHTTPSConnection),
    }
    for scheme, (pool, connection) in kinds.items():
        counted = type("CountedConnection", (_Counted, connection), {"tally": tally})
        own = {"tally": tally, "ConnectionCls": counted, "QueueCls": _Queue}
        session._pool_classes_by_scheme[scheme] = type("CountedPool", (_Lending, pool), own)
