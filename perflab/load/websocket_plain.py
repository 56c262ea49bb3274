"""A WebSocket without compression: picows frames messages in C, the cheapest known for Python."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

from perflab.load.websocket_call import (
    CLOSE_TIMEOUT_S,
    MAX_HEADER_BYTES,
    NORMAL,
    PROTOCOL_ERROR,
    TOO_BIG,
    Call,
    Listener,
    Pieces,
    WebSocket,
    WebSocketError,
    clock,
)


class _Plain:
    def __init__(self, listener: Listener, limit: int) -> None:
        self.listener = listener
        self.pieces = Pieces(limit)
        self.transport: Any = None
        self.kind = ""
        self.code = 0
        self.over = asyncio.Event()
        self.wire_bytes = 0
        self._read_ns = 0

    def read_at_ns(self, last: bool) -> int:
        """Return when the loop handed over the bytes that a frame is of; once per read.

        ``last`` says that no further frame of this read is whole.
        """
        at_ns = self._read_ns or clock()
        self._read_ns = 0 if last else at_ns
        return at_ns

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


async def open_plain(call: Call) -> WebSocket:
    """Open a connection; raises like :func:`perflab.load.websocket.connect`."""
    import picows

    plain = _Plain(call.listener, call.limit)
    data_frames = (picows.WSMsgType.TEXT, picows.WSMsgType.BINARY, picows.WSMsgType.CONTINUATION)

    class Frames(picows.WSListener):
        def on_ws_connected(self, transport: Any) -> None:
            plain.transport = transport

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            at_ns = plain.read_at_ns(frame.last_in_buffer)
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
