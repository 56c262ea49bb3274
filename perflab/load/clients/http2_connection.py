"""One connection over HTTP/2, by h2, and the requests that share it.

A server may end a connection when it likes and say which requests it has not begun (GOAWAY: RFC
9113, 6.8), or refuse one (REFUSED_STREAM: 8.7). Where it allows only so many requests at a time
(SETTINGS_MAX_CONCURRENT_STREAMS), the others wait in order.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import NoAvailableStreamIDError, ProtocolError
from h2.settings import SettingCodes, Settings

from perflab.load.clients.exchange import Exchange
from perflab.load.clients.outcome import Failed
from perflab.load.clients.targets import Origin, looked_up

# The type of the frame (RFC 9113, 6.8), and the bytes before the content of each (4.1).
GOAWAY, HEAD_BYTES = 7, 9
WINDOW_BYTES = 1 << 24
Head = Sequence[tuple[str, str]]


class NotBegun(Exception):
    """The server has surely not begun a request: it may be sent again."""


def _name(code: int) -> str:
    return next((each.name for each in ErrorCodes if each == code), f"error {code}")


class Reply:
    """The reply to one request, as it comes."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.head: dict[str, str] = {}
        self.length = 0
        self.is_sent = self.is_ended = False
        self.received: deque[bytes] = deque()
        self.failure: Exception | None = None
        self.changed = asyncio.Event()

    def fail(self, error: Exception) -> None:
        """Let whoever waits for more meet an error."""
        if self.head and isinstance(error, NotBegun):
            error = Failed("protocol", "the server refused what it had begun to answer")
        self.failure = error
        self.changed.set()

    def take(self, event: Event, now_ns: int) -> None:
        """Take what came."""
        match event:
            case ResponseReceived():
                self.exchange.first_byte_ns = self.exchange.first_byte_ns or now_ns
                for name, value in cast(Head, event.headers):
                    self.head[name] = f"{self.head[name]}, {value}" if name in self.head else value
            case DataReceived():
                self.received.append(event.data)
                self.length += len(event.data)
            case StreamEnded() if not self._has_its_length():
                said = self.head["content-length"]
                self.fail(Failed("protocol", f"{self.length} bytes, with content-length {said}"))
            case StreamEnded():
                self.is_ended = True
            case StreamReset(error_code=ErrorCodes.REFUSED_STREAM):
                self.fail(NotBegun())
            case StreamReset() if not self.is_ended:
                self.fail(Failed("reset", f"the server reset it: {_name(event.error_code)}"))

    def _has_its_length(self) -> bool:
        said = self.head.get("content-length")
        bodiless = self.head[":status"] == "304"
        return said is None or bodiless or (said.isdecimal() and int(said) == self.length)

    async def change(self) -> None:
        """Wait until something came, or the server takes more; raise what the answer failed of."""
        if self.failure is None:
            self.changed.clear()
            await self.changed.wait()
        if self.failure is not None:
            raise self.failure

    async def begun(self) -> None:
        """Wait for the head."""
        while not self.head:
            await self.change()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece."""
        while self.received or not self.is_ended:
            if not self.received:
                await self.change()
            while self.received:
                yield self.received.popleft()


class Connection(asyncio.Protocol):
    """One connection and the requests that share it; ``is_leaving``: it takes no more of them."""

    def __init__(self) -> None:
        self._h2 = H2Connection(H2Configuration(header_encoding="latin-1"))
        self._rest = bytearray()
        self._replies: dict[int, Reply] = {}
        self._turns: deque[asyncio.Future[None]] = deque()
        self._taken = 0
        self._opened = asyncio.Event()
        self._failure: Exception | None = None
        self.is_leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what begins a connection; only its answer shows that the server speaks HTTP/2."""
        self._transport = cast(asyncio.Transport, transport)
        values = {SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES}
        self._h2.local_settings = Settings(client=True, initial_values=values)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(WINDOW_BYTES)
        self._flush()

    async def opened(self) -> None:
        """Wait for the server's settings."""
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Close the connection; requests under way fail."""
        self._transport.close()

    # Sending.

    def is_full(self) -> bool:
        """Return whether one more request has to wait."""
        return self._taken >= self._h2.remote_settings.max_concurrent_streams

    @asynccontextmanager
    async def request(self, exchange: Exchange, head: Head, body: bytes) -> AsyncIterator[Reply]:
        """Send a request when it is its turn; NotBegun where this connection takes it no more."""
        await self._turn()
        number = 0
        try:
            if self.is_leaving:
                raise NotBegun
            number, reply = self._h2.get_next_available_stream_id(), Reply(exchange)
            self._replies[number] = reply
            await self._send(number, reply, head, body)
            yield reply
        except NoAvailableStreamIDError:
            self.is_leaving = True
            raise NotBegun from None
        finally:
            self._taken -= 1
            if number:
                self._end(number)
            self._go_on()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._taken -= 1
                self._go_on()
            raise

    def _go_on(self) -> None:
        """Give their turn to those who wait longest, as many as the server allows."""
        while self._turns and (self.is_leaving or not self.is_full()):
            turn = self._turns.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)

    async def _send(self, number: int, reply: Reply, head: Head, body: bytes) -> None:
        self._h2.send_headers(number, head, end_stream=not body)
        # h2 would end the connection, with all its requests, where one answer has another length.
        vars(self._h2.streams[number])["_initialize_content_length"] = lambda _: None
        self._flush()
        reply.exchange.sent_ns = time.monotonic_ns()
        rest = memoryview(body)
        while rest and not reply.is_ended:
            window = self._h2.local_flow_control_window(number)
            size = min(len(rest), window, self._h2.max_outbound_frame_size)
            if size <= 0:
                await reply.change()
                continue
            self._h2.send_data(number, bytes(rest[:size]), end_stream=size == len(rest))
            self._flush()
            rest = rest[size:]
        reply.is_sent = not rest

    def _end(self, number: int) -> None:
        reply = self._replies.pop(number)
        if not (reply.is_sent and reply.is_ended):
            with suppress(ProtocolError):  # the server has closed it
                self._h2.reset_stream(number, ErrorCodes.CANCEL)
            self._flush()
        if self.is_leaving and not self._replies:
            self._transport.close()

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._transport.write(data)

    # Receiving.

    def data_received(self, data: bytes) -> None:
        """Hand whole frames to h2, all but GOAWAY: after one it would read no answers any more."""
        self._rest += data
        begin = end = 0
        while len(self._rest) >= end + HEAD_BYTES:
            at, size = end, int.from_bytes(self._rest[end : end + 3])
            if size > self._h2.max_inbound_frame_size:
                end = len(self._rest)  # h2 refuses it
                break
            if at + HEAD_BYTES + size > len(self._rest):
                break
            end = at + HEAD_BYTES + size
            if self._rest[at + 3] == GOAWAY:
                self._read(bytes(self._rest[begin:at]))
                self._leave(bytes(self._rest[at + HEAD_BYTES : end]))
                begin = end
        self._read(bytes(self._rest[begin:end]))
        del self._rest[:end]

    def _read(self, frames: bytes) -> None:
        now_ns = time.monotonic_ns()
        try:
            for event in self._h2.receive_data(frames) if frames else ():
                self._take(event, now_ns)
        except ProtocolError as error:
            self._lose(Failed("protocol", str(error)))
            self._transport.close()
            return
        self._flush()
        self._go_on()

    def _take(self, event: Event, now_ns: int) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._opened.set()
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        number = getattr(event, "stream_id", None)
        # What concerns all of them may be what one waits for that has more to send.
        replies = [self._replies.get(number)] if number else list(self._replies.values())
        for reply in filter(None, replies):
            reply.take(event, now_ns)
            reply.changed.set()

    def _leave(self, content: bytes) -> None:
        """Take no more requests; fail those above the last that the server has begun."""
        last, code = (int.from_bytes(content[place : place + 4]) for place in (0, 4))
        self.is_leaving = True
        error: Exception = NotBegun()
        if code:
            error = Failed("protocol", f"the server ended the connection: {_name(code)}")
        for number, reply in self._replies.items():
            if number > last & 0x7FFFFFFF:
                reply.fail(error)
        if not self._replies:
            self._transport.close()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the requests under way."""
        kind = "reset" if isinstance(exc, ConnectionError) else "closed"
        self._lose(Failed(kind, str(exc or "")))

    def _lose(self, error: Exception) -> None:
        self.is_leaving = True
        self._failure = self._failure or error
        self._opened.set()
        for reply in self._replies.values():
            if not reply.is_ended and reply.failure is None:
                reply.fail(error)
        self._go_on()


async def connect(origin: Origin, tls: ssl.SSLContext | None) -> Connection:
    """Return a connection on which the server has answered; raise OSError or Failed."""
    place = looked_up(origin)
    if isinstance(place, OSError):
        raise place
    _, (host, port) = place
    _, connection = await asyncio.get_running_loop().create_connection(
        Connection, host, port, ssl=tls, server_hostname=origin.host if tls else None
    )
    try:
        await connection.opened()
    except BaseException:
        connection.close()
        raise
    return connection
