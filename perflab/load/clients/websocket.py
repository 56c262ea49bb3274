"""WebSocket connections for load: every message with the instant its bytes were read.

A message arrived at the instant at which the loop handed over the read that completed it. All
messages of one read share that instant, so that none is charged for the client's work on others.

picows frames messages in C, the cheapest known for Python. Violations that it accepts are refused
here, by RFC 6455 and RFC 7692: messages within messages, continuations of nothing, texts that are
not UTF-8, extensions that nobody asked for.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import picows

from perflab.load.clients.opening import kind_of
from perflab.load.clients.outcome import ERRORS
from perflab.load.clients.targets import addresses, refuse_foreign, split
from perflab.load.clients.websocket_messages import (
    MAX_MESSAGE_BYTES,
    OFFER,
    TOO_BIG,
    Deflate,
    Pieces,
    WebSocketError,
    agreed,
    check_text,
    may_be_sent,
)

# Added to picows' handshake time-out, which comes first and closes the connection.
HANDSHAKE_ENDS_S = 0.5
# Bytes that may wait for a server that does not read: answers to its pings, and messages to it.
MAX_WAITING_PONGS_BYTES = 1 << 16
MAX_WAITING_BYTES = 1 << 24
CLOSE_TIMEOUT_S = 2.0
# A server from which nothing came for so long is asked whether it is still there.
SILENT_NS = 5_000_000_000
NORMAL, GOING_AWAY, NO_CODE, INTERNAL_ERROR = 1000, 1001, 1005, 1011
TEXT, CLOSE, PING = 1, 8, 9
# The kernel's buffer of a server that sends faster than the client reads. picows doubles its own
# buffer for every read that fills it, and then takes everything in one turn of the loop: seconds in
# which the client hears nothing else.
RECEIVE_BUFFER_BYTES = 1 << 17
# picows' errors are recorded as error classes; a server must not fill the terminal.
MUTED = logging.getLogger("perflab.picows")
MUTED.setLevel(logging.CRITICAL + 1)
MUTED.propagate = False


# It gets each message, and the instant at which the loop handed over its last bytes.
OnMessage = Callable[[bytes, int], None]
# It gets the error class of a connection's end ('' for an orderly close), and its code.
OnClosed = Callable[[str, int], None]


class WebSocket:
    """An open connection; ``wire_bytes`` counts the bytes read, heads of frames included.

    ``heard_ns`` is when anything came last, ``message_ns`` when a message did (before the first:
    when it opened), ``over_ns`` when either side ended it. ``is_answered``: the server answered the
    end, or ended it itself (true until an end stays unanswered).
    """

    def __init__(
        self, on_message: OnMessage, on_closed: OnClosed, deflate: bool, headers: Mapping[str, str]
    ) -> None:
        self._on_message = on_message
        self._on_closed = on_closed
        self._offers_deflate = deflate
        self._sent_headers = {name.lower() for name in headers}
        self._pieces = Pieces()
        self._deflate: Deflate | None = None
        self.transport: Any = None
        self.over = asyncio.Event()
        self.wire_bytes = 0
        # More than MAX_WAITING_PONGS_BYTES wait for the server to read: its pings are not answered,
        # and sends are checked.
        self.choked = False
        self.heard_ns = self.message_ns = time.monotonic_ns()
        self.over_ns = self._asked_ns = 0
        self.is_answered = True
        self._kind = ""
        self._code = 0
        self._read_ns = 0

    # Receiving.

    def agree(self, headers: Any) -> None:
        """Check the extensions and the subprotocol of the server's handshake (RFC 6455, 4.1)."""
        answers = headers.getall("Sec-WebSocket-Extensions", [])
        if self._offers_deflate:
            self._deflate = Deflate(agreed(answers))
        elif answers:
            raise WebSocketError(
                "handshake", f"the server chose {', '.join(answers)}, which was not offered"
            )
        if (
            "Sec-WebSocket-Protocol" in headers
            and "sec-websocket-protocol" not in self._sent_headers
        ):
            raise WebSocketError(
                "handshake", "the server chose a subprotocol, and none was offered"
            )

    def take(self, frame: Any) -> None:
        """Take a frame; the last frame of a message hands it to the listener."""
        if self._kind:
            return
        at_ns = self._read_ns or time.monotonic_ns()
        self._read_ns = 0 if frame.last_in_buffer else at_ns
        self.heard_ns = at_ns
        size = frame.payload_size
        self.wire_bytes += size + (2 if size < 126 else 4 if size < 65_536 else 10)
        packed, opcode = frame.rsv1, frame.msg_type
        try:
            if frame.rsv2 or frame.rsv3 or (packed and (self._deflate is None or opcode >= CLOSE)):
                raise WebSocketError("protocol", "a reserved bit is set")
            if opcode >= CLOSE:
                self._control(frame, opcode)
                return
            if size > MAX_MESSAGE_BYTES:
                # picows refuses it too, but reads on until the server has its close frame.
                raise WebSocketError("message_too_big", f"a frame of {size} bytes", TOO_BIG)
            data = frame.get_payload_as_bytes()
            if not frame.fin or not opcode or self._pieces.count:
                message = self._pieces.take(data, opcode, frame.fin, packed)
                if message is None:
                    return
                data, opcode, packed = message
            if packed and self._deflate is not None:
                data = self._deflate.unpack(data)
            if opcode == TEXT and not data.isascii():
                check_text(data)
        except WebSocketError as error:
            self.fail(error.kind, error.code)
            return
        self._hand_over(data, at_ns)

    def _hand_over(self, message: bytes, at_ns: int) -> None:
        self.message_ns = at_ns
        try:
            self._on_message(message, at_ns)
        except Exception as error:  # the script is the user's: it ends this connection, no other
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a listener to a WebSocket failed", "exception": error}
            )
            self.fail("script", INTERNAL_ERROR)

    def _control(self, frame: Any, opcode: int) -> None:
        if opcode == PING:
            if self.choked:
                self.fail("not_read", GOING_AWAY)
            else:
                self.transport.send_pong(frame.get_payload_as_bytes())
        elif opcode == CLOSE:
            code = int(frame.get_close_code()) if frame.payload_size else NO_CODE
            if frame.payload_size and not may_be_sent(code):
                raise WebSocketError("protocol", f"{code} must not be sent as a close code")
            self._code = code
            self._send_close(NORMAL if code == NO_CODE else code)
            self.transport.disconnect()
            # A server that reads nothing would keep the unsent bytes, and so the connection.
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self.transport.disconnect, False)

    # Ending.

    def look_after(self, timeout_s: float) -> None:
        """Ask a silent server for a sign of life; give it up where none comes within a time."""
        now_ns = time.monotonic_ns()
        if self._kind or self.over.is_set() or now_ns - self.heard_ns < SILENT_NS:
            return
        if self._asked_ns <= self.heard_ns:
            self._asked_ns = now_ns
            self.transport.send_ping(b"")
        elif now_ns - self._asked_ns > timeout_s * 1e9:
            self.fail("silent", GOING_AWAY)

    def fail(self, kind: str, code: int) -> None:
        """Give the connection up for an error class, and send the server a close code."""
        self._kind = self._kind or kind
        self._send_close(code)
        self.transport.disconnect(graceful=False)

    def _send_close(self, code: int) -> None:
        if not self.transport.is_close_frame_sent:
            self.transport.send_close(picows.WSCloseCode(code) if code < 3000 else code)

    def ended(self) -> None:
        """Tell the listener of the end, once."""
        if self.over.is_set():
            return
        self.over.set()
        self.over_ns = self.over_ns or time.monotonic_ns()
        if not (self._kind or self._code):
            self._kind = self._kind_of_end()
        self._on_closed(self._kind, self._code)

    def _kind_of_end(self) -> str:
        """Return why picows itself, or the server, ended the connection."""
        close = self.transport.close_handshake
        if close is None or close.sent is None:
            return "ws_closed"
        return "message_too_big" if close.sent.code == TOO_BIG else "protocol"

    # Sending.

    def send(self, data: bytes, text: bool = True) -> int:
        """Send a message; return when it went out (ns), or raise WebSocketError."""
        if self._kind or self.over.is_set():
            raise WebSocketError(self._kind or "ws_closed", "the WebSocket is closed")
        if self.choked:
            self._check_waiting()
        opcode = picows.WSMsgType.TEXT if text else picows.WSMsgType.BINARY
        if self._deflate is None:
            self.transport.send(opcode, data)
        else:
            self.transport.send(opcode, self._deflate.pack(data), rsv1=True)
        return time.monotonic_ns()

    def _check_waiting(self) -> None:
        waiting = self.transport.underlying_transport.get_write_buffer_size()
        if waiting > MAX_WAITING_BYTES:
            self.fail("not_read", GOING_AWAY)
            raise WebSocketError(
                "not_read",
                f"the server has not read the last {waiting} bytes that it was sent; at most "
                f"{MAX_WAITING_BYTES} may wait: send less, or wait for answers",
            )

    async def close(self, code: int = NORMAL) -> None:
        """Close in an orderly way, within two seconds; one that was silent has failed."""
        if not self.over.is_set():
            self.over_ns = time.monotonic_ns()
            if not self._kind:
                self._code = self._code or code
            self._send_close(code)
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self.over.wait()
            except TimeoutError:
                self.is_answered = False
                if self.over_ns - self.heard_ns > SILENT_NS:
                    self._kind = self._kind or "silent"
                self.ended()
        self.transport.disconnect(graceful=False)


class _Listener(picows.WSListener):
    """The listener that picows calls."""

    def __init__(self, connection: WebSocket) -> None:
        super().__init__()
        self._connection = connection

    def on_ws_connected(self, transport: Any) -> None:
        self._connection.transport = transport
        transport.underlying_transport.set_write_buffer_limits(high=MAX_WAITING_PONGS_BYTES)
        # asyncio would print an exception that nobody retrieves.
        watch = asyncio.ensure_future(transport.wait_disconnected())
        watch.add_done_callback(lambda done: done.cancelled() or done.exception())

    def on_ws_frame(self, _: Any, frame: Any) -> None:
        self._connection.take(frame)

    def on_ws_disconnected(self, _: Any) -> None:
        self._connection.ended()

    def pause_writing(self) -> None:
        self._connection.choked = True

    def resume_writing(self) -> None:
        self._connection.choked = False


async def connect(
    url: str,
    on_message: OnMessage,
    on_closed: OnClosed,
    *,
    deflate: bool = False,
    timeout_s: float = 10.0,
    headers: Mapping[str, str] | None = None,
    allowed: Sequence[str] = (),
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> WebSocket:
    """Open a WebSocket (RFC 6455); raise TargetRefused, or WebSocketError with its ``kind``."""
    refuse_foreign(url, allowed)
    connection = WebSocket(on_message, on_closed, deflate, headers or {})
    extensions = {"Sec-WebSocket-Extensions": OFFER} if deflate else {}
    try:
        async with asyncio.timeout(timeout_s + HANDSHAKE_ENDS_S):
            await _open(connection, url, timeout_s, {**(headers or {}), **extensions}, tls)
    except picows.WSError as error:
        raise WebSocketError("handshake", str(error)) from None
    except TimeoutError:
        raise WebSocketError("timeout", f"not open within {timeout_s:g} s") from None
    except ConnectionResetError as error:
        raise WebSocketError("reset", str(error)) from None
    except OSError as error:
        raise WebSocketError(ERRORS[kind_of(error, "connect")], str(error)) from None
    if connection.transport is None:
        raise WebSocketError("closed", "the server closed in the handshake")
    return connection


async def _open(
    connection: WebSocket,
    url: str,
    timeout_s: float,
    headers: dict[str, str],
    tls: Callable[[], ssl.SSLContext],
) -> None:
    origin, _ = split(url)
    family, address = addresses(origin)[0]

    async def connected(_: Any) -> socket.socket:
        """Connect to the address that was checked; the name may resolve to another by now."""
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            await asyncio.get_running_loop().sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    def listener(_request: Any, response: Any) -> _Listener:
        connection.agree(response.headers)
        return _Listener(connection)

    await picows.ws_connect(
        listener,
        url,
        ssl_context=tls() if origin.encrypted else None,
        socket_factory=connected,
        # picows' own time-out: it leaves a connection open whose opening is cancelled.
        websocket_handshake_timeout=timeout_s,
        enable_auto_pong=False,
        # A redirect could leave the allow-list.
        max_redirects=0,
        max_frame_size=MAX_MESSAGE_BYTES,
        extra_headers=headers or None,
        logger_name=MUTED,
    )
