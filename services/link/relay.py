"""Pairs of connections whose bytes are handed on half a round trip after they arrived."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from enum import Enum

from timer import Timer

MAX_QUEUED_BYTES = 4 * 1024 * 1024


class Mark(Enum):
    """What can follow the last bytes of a direction."""

    END = "no more bytes in this direction"
    CLOSE = "the connection is gone"


Parcel = bytes | Mark


class Delays:
    """Parcels on their way, first in, first out.

    One queue serves all connections. Where a delay is shortened while parcels are under way, new
    ones wait behind those.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.round_trip_ms = 0.0
        self._queue: deque[tuple[int, Side, Parcel]] = deque()
        self._timer = Timer()
        loop.add_reader(self._timer.descriptor, self._fire)

    def send(self, to: Side, parcel: Parcel) -> None:
        """Deliver a parcel after the delay; at 0, with nothing under way, at once."""
        if not self.round_trip_ms and not self._queue:
            to.deliver(parcel)
            return
        due_ns = time.monotonic_ns() + int(self.round_trip_ms * 500_000)
        self._queue.append((due_ns, to, parcel))
        if len(self._queue) == 1:
            self._timer.set(due_ns)

    def _fire(self) -> None:
        self._timer.acknowledge()
        while self._queue and self._queue[0][0] <= time.monotonic_ns():
            _, to, parcel = self._queue.popleft()
            to.deliver(parcel)
        if self._queue:
            self._timer.set(self._queue[0][0])


class Side(asyncio.Protocol):
    """One of the two connections of a pair."""

    def __init__(self, delays: Delays) -> None:
        self._delays = delays
        self.peer: Side | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[Parcel] = []
        self._queued_bytes = 0
        self._queue_full = self._buffer_full = self._holds_peer = False
        self._all_received = self._all_sent = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        early, self._early = self._early, []
        for parcel in early:
            self.deliver(parcel)

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.accept(data)

    def eof_received(self) -> bool:
        if self.peer is not None:
            self._delays.send(self.peer, Mark.END)
        self._all_received = True
        self._close_when_done()
        return True  # the other direction may still have bytes to send

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if self.peer is not None:
            self._delays.send(self.peer, Mark.CLOSE)

    def accept(self, data: bytes) -> None:
        """Take bytes that are to leave through this side; too many stop the peer's reading."""
        self._queued_bytes += len(data)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._queue_full = True
            self._hold_peer()
        self._delays.send(self, data)

    def deliver(self, parcel: Parcel) -> None:
        """Write bytes out, or end or close the connection after what was written."""
        if self.transport is None:
            self._early.append(parcel)
            return
        if isinstance(parcel, bytes):
            self._write(self.transport, parcel)
        elif self.transport.is_closing():
            return
        elif parcel is Mark.END:
            self.transport.write_eof()
            self._all_sent = True
            self._close_when_done()
        else:
            self.transport.close()

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        self._queued_bytes -= len(data)
        if self._queue_full and self._queued_bytes <= MAX_QUEUED_BYTES // 2:
            self._queue_full = False
            self._hold_peer()
        if not transport.is_closing():
            transport.write(data)

    def _close_when_done(self) -> None:
        if self._all_received and self._all_sent and self.transport is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        self._buffer_full = True
        self._hold_peer()

    def resume_writing(self) -> None:
        self._buffer_full = False
        self._hold_peer()

    def _hold_peer(self) -> None:
        """Let the peer read only while neither the queue nor the socket's buffer is full."""
        hold = self._queue_full or self._buffer_full
        transport = self.peer.transport if self.peer else None
        if hold == self._holds_peer or transport is None or transport.is_closing():
            return
        self._holds_peer = hold
        if hold:
            transport.pause_reading()
        else:
            transport.resume_reading()


class Client(Side):
    """The accepted side: opens its upstream at once."""

    def __init__(
        self, delays: Delays, upstream: tuple[str, int], tasks: set[asyncio.Task[None]]
    ) -> None:
        super().__init__(delays)
        self._upstream = upstream
        self._tasks = tasks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = Side(self._delays)
        self.peer.peer = self
        task = asyncio.get_running_loop().create_task(self._connect(self.peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, peer: Side) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: peer, *self._upstream)
        except OSError:
            if self.transport is not None:
                self.transport.abort()
