"""What is made of a body while it comes: it is searched, summed, or kept where there is room.

Only scripts keep bodies. A body that is only judged leaves nothing behind, however long it is.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

from perflab.load.outcome import CODES

KEPT_BYTES = 64 * 1024 * 1024
BODY, CHECKSUM = CODES["body"], CODES["checksum"]
NO_ROOM = (
    f"a worker keeps {KEPT_BYTES >> 20} MiB of its users' answers at a time, and this body did not "
    "fit: let go of answers that were read, ask with keep_body=False for those that nobody reads, "
    "or send the load with more workers"
)


@dataclass(frozen=True)
class Wanted:
    """What a request wants of a body.

    That it holds a text; that it has a CRC-32 (-1: any) or a SHA-256 (empty: any); that it is kept.
    """

    text: bytes = b""
    crc32: int = -1
    sha256: str = ""
    kept: bool = False


class Room:
    """The bytes of bodies that one worker may still keep."""

    def __init__(self, size_bytes: int = KEPT_BYTES) -> None:
        self.left_bytes = size_bytes


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

    __slots__ = ("_digest", "_found", "_sum", "_tail", "_wanted", "fits", "kept")

    def __init__(self, wanted: Wanted, room: Room) -> None:
        self._wanted = wanted
        self._found = not wanted.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self._digest = hashlib.sha256() if wanted.sha256 else None
        self.kept = Kept(room) if wanted.kept else None
        self.fits = True

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
        if self._digest is not None:
            self._digest.update(data)
        if self.kept is not None and self.fits:
            self.fits = self.kept.take(bytes(data))

    @property
    def fault(self) -> int:
        """Return the error code of a body that has ended: 0 when it is what was wanted."""
        if self._wanted.crc32 not in (-1, self._sum):
            return CHECKSUM
        if self._digest is not None and self._digest.hexdigest() != self._wanted.sha256:
            return CHECKSUM
        return 0 if self._found else BODY
