"""What both ways to open a WebSocket share: the call, its listener, messages put together."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Protocol

from perflab.load.outcome import CODES

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
        """A whole message has arrived; the loop handed its last bytes over at ``at_ns``."""

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


@dataclass(frozen=True)
class Call:
    """What is asked of a connection: whom to call, who listens, how long a message may be."""

    url: str
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    listener: Listener
    headers: dict[str, str]
    limit: int


class Pieces:
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
