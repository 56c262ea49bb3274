"""A WebSocket with permessage-deflate (RFC 7692): the sans-I/O layer of ``websockets``."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

from perflab.load.targets import split
from perflab.load.websocket_call import (
    CLOSE_TIMEOUT_S,
    NORMAL,
    PROTOCOL_ERROR,
    TOO_BIG,
    Call,
    Pieces,
    WebSocket,
    WebSocketError,
    clock,
)


class _Deflate(asyncio.Protocol):
    def __init__(self, call: Call) -> None:
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
        self._pieces = Pieces(call.limit)
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


async def open_deflate(call: Call) -> WebSocket:
    """Open a connection; raises like :func:`perflab.load.websocket.connect`."""
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
