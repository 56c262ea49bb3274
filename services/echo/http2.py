"""The echo service over HTTP/2, to those who begin with its preface (prior knowledge, RFC 9113).

``h2`` keeps the protocol's state; here are answers, now or after the delay, and flow control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Takes the body and further headers of an answer.
Give = Callable[[bytes, list[tuple[bytes, bytes]]], None]


class Streams(asyncio.Protocol):
    """One connection of HTTP/2; ``answer`` gives the answer to a path, now or after the delay."""

    def __init__(self, answer: Callable[[bytes, Give], None], transport: asyncio.Transport) -> None:
        self._answer_path = answer
        self._transport: asyncio.Transport | None = transport
        self._paths: dict[int, bytes] = {}
        self._unsent: dict[int, bytes] = {}
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget the transport."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Take in what came; what breaks the protocol ends the connection."""
        try:
            for event in self._h2.receive_data(data):
                self._take(event)
        except ProtocolError:
            self._flush()
            if self._transport is not None:
                self._transport.close()
            return
        self._flush()

    def _take(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._paths[event.stream_id] = dict(event.headers)[b":path"]
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self._answer(event.stream_id)
        elif isinstance(event, StreamReset):
            self._paths.pop(event.stream_id, None)
            self._unsent.pop(event.stream_id, None)
        elif isinstance(event, WindowUpdated):
            for stream in [event.stream_id] if event.stream_id else list(self._unsent):
                self._send(stream)
        elif isinstance(event, ConnectionTerminated) and self._transport is not None:
            self._paths.clear()
            self._unsent.clear()
            self._transport.close()

    def _answer(self, stream: int) -> None:
        def give(body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
            if self._transport is None or self._paths.pop(stream, None) is None:
                return
            length = (b"content-length", b"%d" % len(body))
            self._h2.send_headers(stream, [(b":status", b"200"), length, *headers])
            self._unsent[stream] = body
            self._send(stream)
            self._flush()

        self._answer_path(self._paths[stream].partition(b"?")[0], give)

    def _send(self, stream: int) -> None:
        """Send as much of a body as the client has room for."""
        body = self._unsent.get(stream)
        if body is None:
            return
        while True:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            piece, body = body[:room], body[room:]
            if piece or not body:
                self._h2.send_data(stream, piece, end_stream=not body)
            if not body:
                del self._unsent[stream]
                return
            if not piece:
                self._unsent[stream] = body
                return

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)
