"""What is made of a body while it comes: it is searched, summed, or kept.

Only scripts keep bodies. A body that is only judged leaves nothing behind, however long it is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from perflab.load.clients.outcome import CODES
from perflab.load.clients.streams import Streamed, Streaming

BODY, CHECKSUM = CODES["body"], CODES["checksum"]
KEPT_BYTES = 64 * 1024 * 1024
TOO_LARGE = (
    f"a script is handed bodies of at most {KEPT_BYTES >> 20} MiB: ask with keep_body=False for "
    "those that nobody reads"
)


@dataclass(frozen=True)
class Wanted:
    """What a request wants of a body.

    That it holds a text; that it has a CRC-32 (-1: any); that it is kept; that it is a stream.
    """

    text: bytes = b""
    crc32: int = -1
    kept: bool = False
    stream: Streaming | None = None


class Body:
    """One body, piece by piece."""

    __slots__ = ("_found", "_sum", "_tail", "_wanted", "kept", "refused", "stream")

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._found = not wanted.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self.kept = bytearray()
        self.stream = Streamed(wanted.stream) if wanted.stream is not None else None
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
        if wanted.kept and self.refused is None:
            self.kept += data
            if len(self.kept) > KEPT_BYTES:
                self.refused = ("body_too_large", TOO_LARGE)
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
