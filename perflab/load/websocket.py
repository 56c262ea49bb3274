"""WebSocket connections for load: every message with the instant its bytes were read.

Two ways behind one interface. Without compression picows frames messages (in C, the cheapest
known for Python); with permessage-deflate the sans-I/O layer of ``websockets`` does (RFC 7692).
Both sit on asyncio transports, so instants are taken when the loop hands the bytes over.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from perflab.load.outcome import CODES
from perflab.load.targets import addresses, refuse_foreign, split

MAX_MESSAGE_BYTES = 1 << 20
MAX_HEADER_BYTES = 14
CLOSE_TIMEOUT_S = 2.0
NORMAL, GOING_AWAY, PROTOCOL_ERROR, TOO_BIG = 1000, 1001, 1002, 1009
clock = time.monotonic_ns


class WebSocketError(Exception):
    """A WebSocket could not be opened or used; ``kind`` is its error class."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        assert kind in CODES


class Listener(Protocol):
    """Who wants to know what arrives."""

    def message(self, data: bytes, at_ns: int) -> None:
        """A whole message has arrived; its last bytes were read at ``at_ns``."""

    def closed(self, kind: str, code: int) -> None:
        """The connection has ended: error class ('' when either side closed in order), code."""


class WebSocket(Protocol):
    """An open connection."""

    def send(self, data: bytes, text: bool = True) -> int:
        """Send a message; return the instant it went to the transport (ns)."""

    def pause(self) -> None:
        """Stop reading: the peer's messages pile up in the kernels' buffers, then at the peer."""

    def resume(self) -> None:
        """Read again."""

    async def close(self, code: int = NORMAL) -> None:
        """Close in order, within two seconds."""

    @property
    def wire_bytes(self) -> int:
        """Return the bytes that were read from the network, headers of frames included."""


async def connect(
    url: str,
    listener: Listener,
    *,
    deflate: bool = False,
    timeout_s: float = 10.0,
    headers: Mapping[str, str] | None = None,
    allowed: Sequence[str] = (),
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    verify_tls: bool = True,
    ca_file: str = "",
) -> WebSocket:
    """Open a WebSocket (RFC 6455).

    Raises
    ------
    TargetRefused
        The host is neither loopback nor allowed; nothing was sent.
    WebSocketError
        Refused, timed out, or not agreed to; ``kind`` says which.
    """
    refuse_foreign(url, allowed)
    origin, _ = split(url)
    tls: ssl.SSLContext | None = None
    if origin.encrypted:
        tls = ssl.create_default_context(cafile=ca_file or None)
        if not verify_tls:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    opening = _open_deflate if deflate else _open_plain
    try:
        async with asyncio.timeout(timeout_s):
            _, address = addresses(origin)[0]
            call = _Call(url, address, tls, listener, dict(headers or {}), max_message_bytes)
            return await opening(call)
    except WebSocketError:
        raise
    except TimeoutError:
        raise WebSocketError("timeout", f"not open within {timeout_s:g} s") from None
    except socket.gaierror as error:
        raise WebSocketError("dns", str(error)) from None
    except ssl.SSLError as error:
        raise WebSocketError("tls", str(error)) from None
    except ConnectionResetError as error:
        raise WebSocketError("reset", str(error)) from None
    except OSError as error:
        raise WebSocketError("connect", str(error)) from None


@dataclass(frozen=True)
class _Call:
    url: str
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    listener: Listener
    headers: dict[str, str]
    limit: int


class _Pieces:
    """Puts the frames of a message together, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, data: bytes, last: bool) -> bytes | None:
        """Return the message with its last frame.

        Raises
        ------
        WebSocketError
            It is too big.
        """
        self._size += len(data)
        if self._size > self._limit:
            raise WebSocketError("message_too_big", f"a message of more than {self._limit} bytes")
        if last and not self._parts:
            self._size = 0
            return data
        self._parts.append(data)
        if not last:
            return None
        whole = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return whole


# Without compression: picows.


class _Plain:
    def __init__(self, listener: Listener, limit: int) -> None:
        self.listener = listener
        self.pieces = _Pieces(limit)
        self.transport: Any = None
        self.kind = ""
        self.code = 0
        self.over = asyncio.Event()
        self.wire_bytes = 0

    def send(self, data: bytes, text: bool = True) -> int:
        from picows import WSMsgType

        if self.over.is_set():
            raise WebSocketError("ws_closed", "the WebSocket is closed")
        self.transport.send(WSMsgType.TEXT if text else WSMsgType.BINARY, data)
        return clock()

    def pause(self) -> None:
        self.transport.underlying_transport.pause_reading()

    def resume(self) -> None:
        self.transport.underlying_transport.resume_reading()

    async def close(self, code: int = NORMAL) -> None:
        from picows import WSCloseCode

        if not self.over.is_set():
            self.code = self.code or code
            with contextlib.suppress(Exception):
                self.resume()
            self.transport.send_close(WSCloseCode(code))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self.over.wait()
        self.transport.disconnect()

    def fail(self, kind: str, code: int) -> None:
        from picows import WSCloseCode

        self.kind = self.kind or kind
        self.transport.send_close(WSCloseCode(code))
        self.transport.disconnect(False)

    def end(self, dropped: bool) -> None:
        if not self.over.is_set():
            self.over.set()
            kind = self.kind or ("ws_closed" if dropped else "")
            self.listener.closed(kind, self.code)


async def _open_plain(call: _Call) -> WebSocket:
    import picows

    plain = _Plain(call.listener, call.limit)
    data_frames = (picows.WSMsgType.TEXT, picows.WSMsgType.BINARY, picows.WSMsgType.CONTINUATION)

    class Frames(picows.WSListener):
        def on_ws_connected(self, transport: Any) -> None:
            plain.transport = transport

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            at_ns = clock()
            size = frame.payload_size
            plain.wire_bytes += size + (2 if size < 126 else 4 if size < 65_536 else 10)
            if frame.rsv1 or frame.rsv2 or frame.rsv3:
                plain.fail("protocol", PROTOCOL_ERROR)
            elif frame.msg_type in data_frames:
                try:
                    whole = plain.pieces.take(frame.get_payload_as_bytes(), frame.fin)
                except WebSocketError as error:
                    plain.fail(error.kind, TOO_BIG)
                    return
                if whole is not None:
                    plain.listener.message(whole, at_ns)
            elif frame.msg_type == picows.WSMsgType.PING:
                transport.send_pong(frame.get_payload_as_bytes())
            elif frame.msg_type == picows.WSMsgType.CLOSE:
                plain.code = int(frame.get_close_code() or 1005)
                transport.send_close(frame.get_close_code())
                transport.disconnect()

        def on_ws_disconnected(self, transport: Any) -> None:
            if not plain.code and transport.is_close_frame_sent:
                # picows itself gave the connection up: what came was no frame.
                plain.kind = plain.kind or "protocol"
            plain.end(dropped=not plain.code)

    async def connected(_: Any) -> socket.socket:
        """Connect to the address that was checked, whatever the name resolves to by now."""
        family = socket.AF_INET6 if ":" in call.address[0] else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            await asyncio.get_running_loop().sock_connect(opened, call.address)
        except BaseException:
            opened.close()
            raise
        return opened

    try:
        await picows.ws_connect(
            Frames,
            call.url,
            ssl_context=call.tls,
            socket_factory=connected,
            websocket_handshake_timeout=None,
            enable_auto_pong=False,
            # A redirect could leave the allow-list.
            max_redirects=0,
            max_frame_size=call.limit + MAX_HEADER_BYTES,
            extra_headers=call.headers or None,
        )
    except picows.WSError as error:
        raise WebSocketError("handshake", str(error)) from None
    if plain.transport is None:
        raise WebSocketError("closed", "the server closed in the handshake")
    return plain


# With permessage-deflate: the sans-I/O layer of websockets.


class _Deflate(asyncio.Protocol):
    def __init__(self, call: _Call) -> None:
        from websockets.client import ClientProtocol
        from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
        from websockets.uri import parse_uri

        self.listener = call.listener
        self._headers = call.headers
        self._protocol = ClientProtocol(
            parse_uri(call.url),
            extensions=[ClientPerMessageDeflateFactory(client_max_window_bits=True)],
            max_size=call.limit,
        )
        self._pieces = _Pieces(call.limit)
        self._transport: asyncio.Transport | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._told = False
        self.wire_bytes = 0

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        request = self._protocol.connect()
        for name, value in self._headers.items():
            request.headers[name] = value
        self._protocol.send_request(request)
        self._flush()

    def data_received(self, data: bytes) -> None:
        at_ns = clock()
        self.wire_bytes += len(data)
        self._protocol.receive_data(data)
        self._take(at_ns)

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._take(clock())

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            with contextlib.suppress(Exception):
                self._protocol.receive_eof()
        self._end("reset" if isinstance(error, ConnectionResetError) else "")

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What came.

    def _take(self, at_ns: int) -> None:
        from websockets.frames import DATA_OPCODES, Frame

        for event in self._protocol.events_received():
            if not isinstance(event, Frame):
                self._answered()
            elif event.opcode in DATA_OPCODES:
                whole = self._pieces.take(bytes(event.data), event.fin)
                if whole is not None:
                    self.listener.message(whole, at_ns)
        self._flush()
        if self._protocol.parser_exc is not None and not self.opened.done():
            self._answered()

    def _answered(self) -> None:
        if self.opened.done():
            return
        refused = self._protocol.handshake_exc
        if refused is not None:
            self.opened.set_exception(WebSocketError("handshake", str(refused)))
        elif not self._protocol.extensions:
            self.opened.set_exception(
                WebSocketError("handshake", "the server does not agree to permessage-deflate")
            )
        else:
            self.opened.set_result(None)

    def _flush(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()
                return
        if self._protocol.close_expected():
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def _end(self, kind: str) -> None:
        self._over.set()
        if not self.opened.done():
            refused = self._protocol.handshake_exc
            reason = str(refused) if refused else "closed in the handshake"
            self.opened.set_exception(WebSocketError("handshake" if refused else "closed", reason))
            self._told = True
        if self._told:
            return
        self._told = True
        sent, received = self._protocol.close_sent, self._protocol.close_rcvd
        if sent is not None and sent.code == TOO_BIG:
            kind = "message_too_big"
        elif sent is not None and sent.code in (PROTOCOL_ERROR, 1007):
            kind = "protocol"
        elif received is None and not kind:
            kind = "ws_closed"
        self.listener.closed(kind, received.code if received else 0)

    # WebSocket

    def send(self, data: bytes, text: bool = True) -> int:
        from websockets.exceptions import InvalidState

        try:
            if text:
                self._protocol.send_text(data)
            else:
                self._protocol.send_binary(data)
        except InvalidState:
            raise WebSocketError("ws_closed", "the WebSocket is closed") from None
        self._flush()
        return clock()

    def pause(self) -> None:
        assert self._transport is not None
        self._transport.pause_reading()

    def resume(self) -> None:
        assert self._transport is not None
        self._transport.resume_reading()

    async def close(self, code: int = NORMAL) -> None:
        from websockets.exceptions import InvalidState

        if self._transport is None or self._over.is_set():
            return
        with contextlib.suppress(RuntimeError):
            self._transport.resume_reading()
        with contextlib.suppress(InvalidState):
            self._protocol.send_close(code)
            self._flush()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._over.wait()
        except TimeoutError:
            self._transport.abort()


async def _open_deflate(call: _Call) -> WebSocket:
    loop = asyncio.get_running_loop()
    host = split(call.url)[0].host
    _, made = await loop.create_connection(
        lambda: _Deflate(call),
        *call.address,
        ssl=call.tls,
        server_hostname=host if call.tls else None,
    )
    try:
        await made.opened
    except BaseException:
        made.abort()
        raise
    return made
