"""The common part of clients of other libraries: a task per exchange, and a cap on connections.

Each request is a task, as users of these libraries write it. Instants come from the libraries'
own tracing hooks, error classes from their exceptions. Like the lean client, they read bodies
piece by piece, as they come, and keep neither bodies nor cookies.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, ClassVar

from perflab.host.shortages import class_of
from perflab.load.clients.body import Body, size_in_words
from perflab.load.clients.encodings import Unpacker
from perflab.load.clients.exchange import Exchange
from perflab.load.clients.kept_replies import ReplyKeeper
from perflab.load.clients.outcome import CODES, ERRORS, Failed, FirstErrors
from perflab.load.clients.response import LONG_BYTES, encoding_of, server_phases
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.request import Request
from perflab.load.workload.workload import Workload

# Error classes that say how the data ended.
ENDS = ("closed", "truncated", "no_close_notify")


def headers_of(request: Request, body: bytes) -> dict[str, str]:
    """Return the headers to send, with a body's type where it has one."""
    # The libraries would ask for packed bodies, the lean client does not.
    default = {"Accept-Encoding": "identity"}
    if body:
        default["Content-Type"] = request.usual_type
    named = {name.lower() for name in request.headers}
    added = {name: value for name, value in default.items() if name.lower() not in named}
    return {**added, **request.headers}


def out_of_reach(workload: Workload) -> list[str]:
    """Return a sentence for each thing that a workload asks for and its client cannot do."""
    if workload.client == "lean":
        return []
    request = workload.request
    lacks = {
        "records no progress_points": request.progress_points,
        "records no chunks of a stream": request.stream,
        "follows no redirects": request.redirects,
        "lets no scripted users act": isinstance(workload.arrivals, Scripted),
    }
    problems = [
        f"the {workload.client} client {lack}; the lean one does (client='lean')"
        for lack, is_asked in lacks.items()
        if is_asked
    ]
    if workload.client == "http2" and (workload.connections.closing or workload.connections.most):
        problems.append(
            "over HTTP/2 the requests of a worker share one connection: it is neither closed "
            "after each of them nor one of several"
        )
    return problems


def is_ended_by_closing(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether only the end of the data ends a response (RFC 9112, 6.3)."""
    is_framed = "content-length" in headers or "transfer-encoding" in headers
    return not is_framed and status not in (204, 304)


def _check_end(encrypted: ssl.SSLObject) -> None:
    """Raise SSLEOFError if the peer has not ended its data with close_notify."""
    try:
        encrypted.read(1)
    except ssl.SSLZeroReturnError:
        pass
    except ssl.SSLError:
        raise ssl.SSLEOFError from None


class LibraryClient:
    """Sends each exchange in a task; subclasses send by a library and class its errors."""

    # The error class of an exception is that of the first entry.
    _kinds: ClassVar[Sequence[tuple[Any, str]]]

    def __init__(self, workload: Workload, connections: int) -> None:
        self.capped = self.resent = 0
        self.first_errors = FirstErrors()
        self.keeper: ReplyKeeper | None = None
        self.timeout_s = workload.timeout_s
        self._bodies = cycle(workload.request.bodies)
        self._free = asyncio.Semaphore(connections)
        self._tasks: dict[asyncio.Task[None], Exchange] = {}

    def submit(self, exchange: Exchange) -> None:
        """Start a task that sends a request whose ``planned_ns`` and ``started_ns`` are set."""
        self.capped += self._free.locked()
        task = asyncio.create_task(self._perform(exchange))
        self._tasks[task] = exchange

    async def _perform(self, exchange: Exchange) -> None:
        exchange.status = exchange.bytes = exchange.error = exchange.kept = 0
        exchange.phases = None
        try:
            async with asyncio.timeout(self.timeout_s), self._free:
                await self._send(exchange, next(self._bodies))
        except asyncio.CancelledError:
            exchange.error = CODES["aborted" if exchange.sent_ns else "unsent"]
        except Exception as error:  # whatever a library raises is the outcome of this request
            kind = class_of(error) or self._class_of(error)
            if isinstance(error, ssl.SSLEOFError):
                kind = "no_close_notify"
            elif kind == "closed" and exchange.first_byte_ns:
                kind = "truncated"
            exchange.error = CODES[kind]
            # Libraries have the same words for an end before the response and within it.
            if kind not in ENDS:
                self.first_errors.note(kind, str(error) or type(error).__name__)
        if not exchange.done_ns or exchange.error:
            exchange.done_ns = time.monotonic_ns()
        task = asyncio.current_task()
        if task is not None:
            self._tasks.pop(task, None)
        exchange.finish(exchange)

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        raise NotImplementedError

    def _class_of(self, error: Exception) -> str:
        if isinstance(error, Failed):
            return error.kind
        return next((kind for types, kind in self._kinds if isinstance(error, types)), "protocol")

    async def _take(
        self,
        exchange: Exchange,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterable[bytes],
        encrypted: ssl.SSLObject | None,
    ) -> None:
        """Read a response piece by piece; raise SSLEOFError where its end was not said."""
        prepared = exchange.prepared
        body = Body(prepared.body_rules) if prepared.body_rules is not None else None
        lines = "".join(f"\r\n{name}: {value}" for name, value in headers.items())
        head = lines.encode("latin-1", "replace")
        encoding = encoding_of(head)
        if body is not None and encoding:
            body.unpacker = Unpacker(encoding)
        exchange.status = status
        kept: list[bytes] = []
        async for piece in pieces:
            exchange.bytes += len(piece)
            if exchange.bytes <= LONG_BYTES:
                kept.append(piece)
            if body is not None:
                body.take(piece)
        if encrypted is not None and is_ended_by_closing(status, headers):
            _check_end(encrypted)
        exchange.done_ns = time.monotonic_ns()
        exchange.error = prepared.judge(status, body)
        keeper, is_judged = self.keeper, exchange.error or prepared.is_judged
        if keeper is not None and not is_judged and not keeper.is_passed_over(exchange):
            exchange.kept = keeper.keep(exchange, head, kept)
        if exchange.error:
            text = f"HTTP status {status}, {size_in_words(exchange.bytes, encoding, body)}"
            self.first_errors.note(ERRORS[exchange.error], text, status)
        exchange.phases = server_phases(head)

    def give_up_waiting(self) -> None:
        """Cancel requests that were not sent yet; each ends as ``unsent``."""
        # A task that has not begun would not record its end: in the next turn all have begun.
        asyncio.get_running_loop().call_soon(self._cancel_unsent)

    def _cancel_unsent(self) -> None:
        for task, exchange in list(self._tasks.items()):
            if not exchange.sent_ns:
                task.cancel()

    def abort(self) -> None:
        """Cancel all requests; each ends as ``aborted``, or ``unsent``."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel all requests and close every connection."""
        self.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        raise NotImplementedError


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
