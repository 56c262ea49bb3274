"""What is made of a body while it comes: it is searched, summed, or kept where there is room.

Only scripts keep bodies. A body that is only judged leaves nothing behind, however long it is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from perflab.load.outcome import CODES
from perflab.load.streamed import NO_ROOM, Room, Streamed, Streaming

BODY, CHECKSUM = CODES["body"], CODES["checksum"]


@dataclass(frozen=True)
class Wanted:
    """What a request wants of a body.

    That it holds a text; that it has a CRC-32 (-1: any); that it is kept; that it is a stream.
    """

    text: bytes = b""
    crc32: int = -1
    kept: bool = False
    stream: Streaming | None = None


class Kept:
    """A body kept whole. It takes room until nobody refers to it."""

    __slots__ = ("_data", "_room", "_size")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0
        self._data: bytes | bytearray = b""

    def __del__(self) -> None:
        self._room.left_bytes += self._size

    def take(self, data: bytes) -> bool:
        """Keep a piece more; return whether there was room."""
        size = len(data)
        if size > self._room.left_bytes:
            self._data = b""
            return False
        self._room.left_bytes -= size
        if self._size:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += data
        else:
            self._data = data
        self._size += size
        return True

    def content(self) -> bytes:
        """Return the whole body."""
        self._data = bytes(self._data)
        return self._data


class Body:
    """One body, piece by piece."""

    __slots__ = ("_found", "_sum", "_tail", "_wanted", "kept", "refused", "stream")

    def __init__(self, wanted: Wanted, room: Room) -> None:
        self._wanted = wanted
        self._found = not wanted.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self.kept = Kept(room) if wanted.kept else None
        self.stream = Streamed(wanted.stream, room) if wanted.stream is not None else None
        # The error class of a body that cannot be read on, and why.
        self.refused: tuple[str, str] | None = None

    def take(self, data: bytes | memoryview) -> None:
        """Look at the next piece; it may change afterwards."""
        wanted = self._wanted
        if not self._found:
            seen = self._tail + data
            self._found = wanted.text in seen
            if not self._found:
                self._tail = seen[max(0, len(seen) - len(wanted.text) + 1) :]
        if wanted.crc32 >= 0:
            self._sum = zlib.crc32(data, self._sum)
        if self.kept is not None and self.refused is None and not self.kept.take(bytes(data)):
            self.refused = ("body_too_large", NO_ROOM)
        if self.stream is not None:
            self.stream.take(bytes(data))
            self.refused = self.refused or self.stream.refused

    @property
    def fault(self) -> int:
        """Return the error code of a body that has ended: 0 when it is what was wanted."""
        if self._wanted.crc32 not in (-1, self._sum):
            return CHECKSUM
        if not self._found:
            return BODY
        return self.stream.fault if self.stream is not None else 0
