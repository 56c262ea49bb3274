"""WebSocket servers that are wrong in different ways, and the error class of each end.

Outcomes are those of RFC 6455 and RFC 7692. The class is '' where nothing was wrong: a server may
be silent, send what nobody awaits, or end the connection in order.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from dataclasses import dataclass

from tests.load.clients.hostile import ENDLESS, End, Part, Script

DEFLATE = "permessage-deflate"
CONT, TEXT, BINARY, CLOSE, PING = 0, 1, 2, 8, 9
MESSAGE_LIMIT = 1 << 20


def frame(
    opcode: int, payload: bytes = b"", *, last: bool = True, reserved: int = 0, masked: bool = False
) -> bytes:
    """Return a frame as a server sends it, or with what no server may send."""
    length = len(payload)
    flags = bytes([last << 7 | reserved << 4 | opcode])
    if length < 126:
        size = bytes([masked << 7 | length])
    elif length < 65_536:
        size = bytes([masked << 7 | 126]) + struct.pack("!H", length)
    else:
        size = bytes([masked << 7 | 127]) + struct.pack("!Q", length)
    return flags + size + (bytes(4) if masked else b"") + payload


def closing(code: int, reason: bytes = b"") -> bytes:
    """Return a close frame."""
    return frame(CLOSE, struct.pack("!H", code) + reason)


@dataclass(frozen=True)
class Peer:
    """A server: its name, its script, how the connection ends, and whether it compresses."""

    name: str
    script: Script
    outcome: str
    deflate: bool = False

    @property
    def floods(self) -> bool:
        """Whether it sends without end or pause, and so starves the others."""
        return any(part.times == ENDLESS and not part.pause_s for part in self.script.parts)


class Ears:
    """A listener that keeps its messages."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, int]] = []
        self.ends: list[tuple[str, int]] = []
        self.news = asyncio.Event()
        self.both = (self.message, self.closed)

    def message(self, data: bytes, at_ns: int) -> None:
        self.messages.append((data, at_ns))
        self.news.set()

    def closed(self, kind: str, code: int) -> None:
        self.ends.append((kind, code))
        self.news.set()

    async def until(self, count: int = 0, ends: int = 0, bound_s: float = 10.0) -> None:
        async with asyncio.timeout(bound_s):
            while len(self.messages) < count or len(self.ends) < ends:
                self.news.clear()
                await self.news.wait()


def answers(name: str, outcome: str, *parts: bytes | Part, end: End = "close") -> Peer:
    """Return a peer that reads the request, sends parts, which open no WebSocket, and ends."""
    return Peer(name, Script(as_parts(parts), end), outcome)


def speaks(
    name: str,
    outcome: str,
    *parts: bytes | Part,
    end: End = "hang",
    deflate: bool = False,
    extensions: str | None = None,
) -> Peer:
    """Return a peer that opens a WebSocket and then sends parts."""
    agreed = extensions if extensions is not None else DEFLATE if deflate else ""
    return Peer(name, Script(as_parts(parts), end, upgrades=agreed), outcome, deflate)


def as_parts(parts: tuple[bytes | Part, ...]) -> tuple[Part, ...]:
    """Return the parts, with bytes turned into parts."""
    return tuple(part if isinstance(part, Part) else Part(part) for part in parts)


# libuv does not report a reset that arrives with the last bytes.
LATER = Part(b"", 0.1)
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\n"
UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
WRONG = b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"

HANDSHAKES = (
    answers("nothing, then closes", "closed", end="close"),
    answers("nothing at all", "timeout", end="hang"),
    answers("a head drop by drop", "timeout", SWITCH, Part(b"A: b\r\n", 0.05, ENDLESS), end="hang"),
    answers("a head for ever", "handshake", SWITCH, Part(b"A: b\r\n" * 99, 0, ENDLESS)),
    answers("a refusal", "handshake", b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
    answers("a wrong accept", "handshake", SWITCH + UPGRADE + WRONG + b"\r\n"),
    speaks("an extension unasked", "handshake", extensions="x-snow"),
    speaks("no deflate", "handshake", deflate=True, extensions=""),
    speaks("deflate with a window of 99 bits", "handshake", deflate=True,
           extensions=f"{DEFLATE}; server_max_window_bits=99"),
)  # fmt: skip

FRAMES = (
    speaks("a masked frame", "protocol", frame(TEXT, b"a", masked=True)),
    speaks("RSV2", "protocol", frame(TEXT, b"a", reserved=2)),
    *(speaks(f"close code {code}", "protocol", closing(code))
      for code in (0, 1005)),
    speaks("a length of 2**62", "message_too_big", b"\x81\x7f\x40" + bytes(7)),
    speaks("a frame of 2 MB", "message_too_big", frame(BINARY, bytes(2 * MESSAGE_LIMIT))),
    speaks("half a frame, then the end", "ws_closed", frame(TEXT, b"hello")[:3], end="close"),
    speaks("a reset", "ws_closed", LATER, end="reset"),
    speaks("a close in order", "", closing(1000), end="close"),
    speaks("a close with a code of its own", "", closing(4999, b"so long"), end="close"),
)  # fmt: skip

MESSAGES = (
    speaks("a continuation of nothing", "protocol", frame(CONT, b"a")),
    speaks("a text within a text", "protocol", frame(TEXT, b"a", last=False), frame(TEXT, b"b")),
    speaks("a ping within a text", "", frame(TEXT, b"a", last=False), frame(PING), frame(CONT)),
    speaks("a text that is not UTF-8", "protocol", frame(TEXT, b"\xff\xfe")),
    speaks("bytes that are not UTF-8", "", frame(BINARY, b"\xff\xfe")),
    speaks("empty pieces for ever", "message_too_big", frame(TEXT, last=False),
           Part(frame(CONT, last=False) * 9999, 0, ENDLESS)),
    speaks("pings for ever, nothing read", "not_read",
           Part(frame(PING, bytes(125)) * 99, 0, ENDLESS)),
    speaks("messages for ever", "", Part(frame(TEXT, b"hello") * 999, 0, ENDLESS)),
)  # fmt: skip

PACKER = zlib.compressobj(9, wbits=-15)
FILL = PACKER.compress(bytes(1 << 26)) + PACKER.flush(zlib.Z_FULL_FLUSH)
# 768 MiB in 782 kB: less than a message may have on the wire.
BOMB = frame(BINARY, (FILL * 12)[:-4], reserved=4)
COMPRESSED = (
    speaks("a bomb", "message_too_big", BOMB, deflate=True),
    speaks("a bomb in pieces", "message_too_big", frame(BINARY, FILL, last=False, reserved=4),
           *[frame(CONT, FILL, last=False)] * 10, frame(CONT, FILL[:-4]), deflate=True),
    speaks("what was never compressed", "protocol", frame(TEXT, b"\xff\xff\xff", reserved=4),
           deflate=True),
    speaks("RSV1 in a continuation", "protocol", frame(TEXT, b"a", last=False, reserved=4),
           frame(CONT, b"b", reserved=4), deflate=True),
    speaks("compressed pieces for ever", "message_too_big", frame(TEXT, last=False, reserved=4),
           Part(frame(CONT, b"\x00\x00\x00\xff\xff" * 999, last=False), 0, ENDLESS), deflate=True),
)  # fmt: skip

PEERS = (*HANDSHAKES, *FRAMES, *MESSAGES, *COMPRESSED)
