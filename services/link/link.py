"""A TCP proxy whose delay can be set while connections are open.

Every byte is forwarded half a round trip after it arrived, in order. Event-loop timers round to a
millisecond, so due times are kept by one timerfd on CLOCK_MONOTONIC.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import time
from collections import deque

import uvloop
from aiohttp import web

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
TFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
MAX_QUEUED_BYTES = 4 * 1024 * 1024


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Timer:
    """One absolute timer of the kernel, through ctypes (Python has it from 3.13 on)."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._libc.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def set(self, due_ns: int) -> None:
        """Fire at an instant."""
        value = _Itimerspec(_Timespec(0, 0), _Timespec(*divmod(max(1, due_ns), 1_000_000_000)))
        self._libc.timerfd_settime(self.descriptor, TFD_TIMER_ABSTIME, ctypes.byref(value), None)

    def acknowledge(self) -> None:
        """Take note of a firing."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 8)


class Delays:
    """Bytes on their way, first in, first out."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.round_trip_ms = 0.0
        self._queue: deque[tuple[int, Side, bytes | None]] = deque()
        self._timer = Timer()
        loop.add_reader(self._timer.descriptor, self._fire)

    def send(self, to: Side, data: bytes | None) -> None:
        """Deliver bytes (None: the end of the stream) after the delay."""
        if not self.round_trip_ms and not self._queue:
            to.deliver(data)
            return
        due_ns = time.monotonic_ns() + int(self.round_trip_ms * 500_000)
        if self._queue:
            # A shorter delay set meanwhile must not let bytes overtake others.
            due_ns = max(due_ns, self._queue[-1][0])
        self._queue.append((due_ns, to, data))
        if len(self._queue) == 1:
            self._timer.set(due_ns)

    def _fire(self) -> None:
        self._timer.acknowledge()
        while self._queue and self._queue[0][0] <= time.monotonic_ns():
            _, to, data = self._queue.popleft()
            to.deliver(data)
        if self._queue:
            self._timer.set(self._queue[0][0])


class Side(asyncio.Protocol):
    """One of the two connections of a pair."""

    def __init__(self, delays: Delays) -> None:
        self._delays = delays
        self.peer: Side | None = None
        self.transport: asyncio.Transport | None = None
        self._waiting: list[bytes | None] = []
        self._queued_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self.deliver(data)

    def data_received(self, data: bytes) -> None:
        assert self.peer is not None
        self.peer.accept(data)

    def eof_received(self) -> bool:
        if self.peer is not None:
            self._delays.send(self.peer, None)
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        if self.peer is not None:
            self._delays.send(self.peer, None)

    def accept(self, data: bytes) -> None:
        """Take bytes that are to leave through this side, and slow the peer when there are many."""
        self._queued_bytes += len(data)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._hold_peer(True)
        self._delays.send(self, data)

    def deliver(self, data: bytes | None) -> None:
        """Write bytes out, or close after what was written."""
        if self.transport is None:
            self._waiting.append(data)
            return
        if data is None:
            self.transport.close()
            return
        if self._queued_bytes > MAX_QUEUED_BYTES >= self._queued_bytes - len(data):
            self._hold_peer(False)
        self._queued_bytes -= len(data)
        self.transport.write(data)

    def pause_writing(self) -> None:
        self._hold_peer(True)

    def resume_writing(self) -> None:
        self._hold_peer(False)

    def _hold_peer(self, hold: bool) -> None:
        transport = self.peer.transport if self.peer else None
        if transport is None or transport.is_closing():
            return
        if hold:
            transport.pause_reading()
        else:
            transport.resume_reading()


class Client(Side):
    """The accepted side: opens its upstream at once."""

    def __init__(self, delays: Delays, upstream: tuple[str, int], tasks: set[asyncio.Task]) -> None:
        super().__init__(delays)
        self._upstream = upstream
        self._tasks = tasks

    def connection_made(self, transport: asyncio.Transport) -> None:
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


def control(delays: Delays) -> web.Application:
    """Return the control application: GET and PUT /settings, GET /health."""

    async def show(_request: web.Request) -> web.Response:
        return web.json_response({"round_trip_ms": delays.round_trip_ms})

    async def change(request: web.Request) -> web.Response:
        try:
            value = float((await request.json())["round_trip_ms"])
        except (ValueError, KeyError, TypeError):
            return web.json_response({"detail": "round_trip_ms must be a number"}, status=422)
        if not 0 <= value <= 1000:
            return web.json_response({"detail": "round_trip_ms must be 0 to 1000"}, status=422)
        delays.round_trip_ms = value
        return await show(request)

    application = web.Application()
    application.router.add_get("/health", show)
    application.router.add_get("/settings", show)
    application.router.add_put("/settings", change)
    return application


def address(text: str) -> tuple[str, int]:
    """Read ``host:port``."""
    host, _, port = text.rpartition(":")
    return host, int(port)


async def serve(listen: tuple[str, int], at: tuple[str, int], upstream: tuple[str, int]) -> None:
    """Run the proxy and its control until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    delays = Delays(loop)
    tasks: set[asyncio.Task] = set()
    server = await loop.create_server(
        lambda: Client(delays, upstream, tasks), *listen, backlog=1024
    )
    runner = web.AppRunner(control(delays), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, *at).start()
    await ended.wait()
    server.close()
    await runner.cleanup()


def main() -> None:
    """Read the addresses and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--control", type=address, required=True)
    parser.add_argument("--upstream", type=address, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.listen, options.control, options.upstream))


if __name__ == "__main__":
    main()
