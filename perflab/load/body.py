"""What is made of a body while it comes: it is searched, summed, or kept where there is room.

Only scripts keep bodies. A body that is only judged leaves nothing behind, however long it is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

KEPT_BYTES = 64 * 1024 * 1024
NO_ROOM = (
    f"a worker keeps {KEPT_BYTES >> 20} MiB of its users' answers at a time, and this body did not "
    "fit: let go of answers that were read, ask with keep_body=False for those that nobody reads, "
    "or send the load with more workers"
)


@dataclass(frozen=True)
class Wanted:
    """What a request wants of a body: that it holds a text, has a checksum (-1: any), is kept."""

    text: bytes = b""
    crc32: int = -1
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

    __slots__ = ("_found", "_sum", "_tail", "_wanted", "fits", "kept")

    def __init__(self, wanted: Wanted, room: Room) -> None:
        self._wanted = wanted
        self._found = not wanted.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self.kept = Kept(room) if wanted.kept else None
        self.fits = True

    def take(self, data: bytes) -> None:
        """Look at the next piece."""
        wanted = self._wanted
        if not self._found:
            seen = self._tail + data
            self._found = wanted.text in seen
            if not self._found:
                self._tail = seen[max(0, len(seen) - len(wanted.text) + 1) :]
        if wanted.crc32 >= 0:
            self._sum = zlib.crc32(data, self._sum)
        if self.kept is not None and self.fits:
            self.fits = self.kept.take(data)

    @property
    def as_wanted(self) -> bool:
        """Whether the pieces so far hold what was wanted."""
        return self._found and self._wanted.crc32 in (-1, self._sum)
