"""Pairs of connections whose bytes are handed on at the link's pace, half a round trip later."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import deque

from pacing import Channel, Line, Mark, Parcel
from timer import Timer

MAX_QUEUED_BYTES = 4 * 1024 * 1024
# How far the sender of a limited connection may be ahead in the kernel, which doubles the number
# for what it needs itself: left alone it would give megabytes to each.
KERNEL_BUFFER_BYTES = 131_072


class Delays:
    """Parcels of all connections on their way: first in, first out, whatever the delay becomes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.round_trip_ms = 0.0
        self._queue: deque[tuple[int, Side, Parcel]] = deque()
        self._timer = Timer()
        loop.add_reader(self._timer.descriptor, self._fire)

    def send(self, to: Side, parcel: Parcel, now_ns: int = 0) -> None:
        """Deliver a parcel after the delay; at 0, with nothing under way, at once."""
        if not self.round_trip_ms and not self._queue:
            to.deliver(parcel)
            return
        due_ns = (now_ns or time.monotonic_ns()) + int(self.round_trip_ms * 500_000)
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


class Link:
    """What all connections pass: a line in each direction with its bandwidth, then the delay."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.delays = Delays(loop)
        self.up, self.down = _line(loop), _line(loop)
        self.most_queued_bytes = MAX_QUEUED_BYTES
        # The event loop keeps no task alive.
        self.tasks: set[asyncio.Task[None]] = set()

    def change(self, round_trip_ms: float, bytes_per_s: float, shared_bytes_per_s: float) -> None:
        """Set the delay, and the limits of each connection and of all; directions are alike."""
        self.delays.round_trip_ms = round_trip_ms
        # What one full connection has on its way in one direction.
        most = min(bytes_per_s, shared_bytes_per_s)
        under_way = 0 if math.isinf(most) else int(most * round_trip_ms / 2000)
        self.most_queued_bytes = MAX_QUEUED_BYTES + under_way
        for line in (self.up, self.down):
            line.limit(bytes_per_s, shared_bytes_per_s)


def _line(loop: asyncio.AbstractEventLoop) -> Line:
    timer = Timer()
    line = Line(timer.set)

    def fire() -> None:
        timer.acknowledge()
        line.wake()

    loop.add_reader(timer.descriptor, fire)
    return line


class Side(asyncio.Protocol):
    """One of the two connections of a pair; ``line`` takes what it receives."""

    def __init__(self, link: Link, line: Line) -> None:
        self._link = link
        self._line = line
        self._channel = Channel(line, self._pass_on, self._read_or_not)
        self.peer: Side | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[Parcel] = []
        self._queued_bytes = 0
        self._queue_full = self._buffer_full = self._holds_peer = False
        self._is_held = self._is_paused = self._is_narrow = False
        self._all_received = self._all_sent = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._line.is_free:
            self._narrow()
        self._read_or_not()
        early, self._early = self._early, []
        for parcel in early:
            self.deliver(parcel)

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            return
        if self._line.is_free:
            self.peer.accept(data)
            return
        if not self._is_narrow:
            self._narrow()
        self._channel.put(data)

    def eof_received(self) -> bool:
        self._channel.put(Mark.END)
        self._all_received = True
        self._close_when_done()
        return True  # the other direction may still have bytes to send

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._channel.put(Mark.CLOSE)
        if self.peer is not None:
            self.peer._channel.drop()

    def accept(self, data: bytes | memoryview, now_ns: int = 0) -> None:
        """Take bytes that are to leave through this side; too many stop the peer's reading."""
        self._queued_bytes += len(data)
        if self._queued_bytes > self._link.most_queued_bytes:
            self._queue_full = True
            self._hold_peer()
        self._link.delays.send(self, data, now_ns)

    def deliver(self, parcel: Parcel) -> None:
        """Write bytes out, or end or close the connection after what was written."""
        if self.transport is None:
            self._early.append(parcel)
            return
        if not isinstance(parcel, Mark):
            self._write(self.transport, parcel)
        elif self.transport.is_closing():
            return
        elif parcel is Mark.END:
            self.transport.write_eof()
            self._all_sent = True
            self._close_when_done()
        else:
            self.transport.close()

    def hold(self, *, held: bool) -> None:
        """Receive nothing, and let nothing of it leave, while the peer takes no more."""
        self._is_held = held
        self._channel.block(blocked=held)
        self._read_or_not()

    def _pass_on(self, parcel: Parcel, now_ns: int) -> None:
        if self.peer is None:
            return
        if isinstance(parcel, Mark):
            self._link.delays.send(self.peer, parcel, now_ns)
        else:
            self.peer.accept(parcel, now_ns)

    def _write(self, transport: asyncio.Transport, data: bytes | memoryview) -> None:
        self._queued_bytes -= len(data)
        if self._queue_full and self._queued_bytes <= self._link.most_queued_bytes // 2:
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
        if hold != self._holds_peer and self.peer is not None:
            self._holds_peer = hold
            self.peer.hold(held=hold)

    def _read_or_not(self) -> None:
        transport, pause = self.transport, self._is_held or self._channel.is_full
        if pause == self._is_paused or transport is None or transport.is_closing():
            return
        self._is_paused = pause
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _narrow(self) -> None:
        self._is_narrow = True
        if self.transport is not None:
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER_BYTES
            )


class Client(Side):
    """The accepted side: opens its upstream at once."""

    def __init__(self, link: Link, upstream: tuple[str, int]) -> None:
        super().__init__(link, link.up)
        self._upstream = upstream

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = Side(self._link, self._link.down)
        self.peer.peer = self
        task = asyncio.get_running_loop().create_task(self._connect(self.peer))
        self._link.tasks.add(task)
        task.add_done_callback(self._link.tasks.discard)

    async def _connect(self, peer: Side) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: peer, *self._upstream)
        except OSError:
            if self.transport is not None:
                self.transport.abort()
