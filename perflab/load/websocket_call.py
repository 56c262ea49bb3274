"""What both ways to open a WebSocket share: the call, its listener, messages put together."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Protocol

from perflab.load.outcome import CODES

MAX_MESSAGE_BYTES = 1 << 20
MAX_FRAGMENTS = 1 << 14
# What may wait for a server that does not read: of answers to its pings, and of messages to it.
MAX_WAITING_PONGS_BYTES = 1 << 16
MAX_WAITING_BYTES = 1 << 24
CLOSE_TIMEOUT_S = 2.0
NORMAL, GOING_AWAY, PROTOCOL_ERROR, NO_CODE = 1000, 1001, 1002, 1005
BAD_TEXT, TOO_BIG, INTERNAL_ERROR = 1007, 1009, 1011
CONTINUATION, TEXT, CLOSE, PING = 0, 1, 8, 9
clock = time.monotonic_ns


class WebSocketError(Exception):
    """A WebSocket could not be opened or used.

    ``kind`` is its error class, ``code`` what the server is told of it (RFC 6455, 7.4.1).
    """

    def __init__(self, kind: str, reason: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(reason)
        self.kind = kind
        self.code = code
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
        """Send a message; return the instant it went to the transport (ns).

        Raises
        ------
        WebSocketError
            The WebSocket is closed, or the server has not read what was sent before.
        """

    async def close(self, code: int = NORMAL) -> None:
        """Close in order, within two seconds."""

    @property
    def wire_bytes(self) -> int:
        """Return the bytes that were read from the network, headers of frames included."""


@dataclass(frozen=True)
class Call:
    """What is asked of a connection: whom to call, who listens."""

    url: str
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    listener: Listener
    headers: dict[str, str]
    deflate: bool
    timeout_s: float


class Pieces:
    """Puts the frames of a message together, up to the largest there may be (RFC 6455, 5.4).

    ``count`` is how many there are of a message that is still to be ended.
    """

    def __init__(self) -> None:
        self._opcode = CONTINUATION
        self._packed = False
        self._parts = bytearray()
        self.count = 0

    def take(
        self, data: bytes, opcode: int, last: bool, packed: bool = False
    ) -> tuple[bytes, int, bool] | None:
        """Return a message with its last frame: its bytes, opcode, and whether it is packed.

        Raises
        ------
        WebSocketError
            It is too big, or the frame is none that may come now.
        """
        self.count += 1
        if len(self._parts) + len(data) > MAX_MESSAGE_BYTES or self.count > MAX_FRAGMENTS:
            limits = f"{MAX_MESSAGE_BYTES} bytes or {MAX_FRAGMENTS} fragments"
            raise WebSocketError("message_too_big", f"a message of more than {limits}", TOO_BIG)
        if self.count == 1:
            if opcode == CONTINUATION:
                raise WebSocketError("protocol", "a continuation of no message")
            self._opcode, self._packed = opcode, packed
        elif opcode != CONTINUATION:
            raise WebSocketError("protocol", "a message within another one")
        elif packed:
            raise WebSocketError("protocol", "RSV1 in a continuation")
        self._parts += data
        if not last:
            return None
        whole = bytes(self._parts)
        self._parts.clear()
        self.count = 0
        return whole, self._opcode, self._packed


def check_text(message: bytes) -> None:
    """Refuse a text that is not UTF-8 (RFC 6455, 8.1).

    Raises
    ------
    WebSocketError
        It is not.
    """
    try:
        message.decode()
    except UnicodeDecodeError as error:
        reason = f"a text that is not UTF-8: {error}"
        raise WebSocketError("protocol", reason, BAD_TEXT) from None


def may_be_sent(code: int) -> bool:
    """Tell whether a code may stand in a close frame (RFC 6455, 7.4; the registry of IANA)."""
    return (1000 <= code <= 1014 and code not in (1004, 1005, 1006)) or 3000 <= code <= 4999
