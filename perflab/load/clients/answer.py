"""A body is searched, summed or kept while it arrives.

Only scripts keep bodies. A body that is only judged takes no memory, however long it is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from perflab.load.clients.outcome import CODES
from perflab.load.clients.streams import Streamed, Streaming

BODY, CHECKSUM = CODES["body"], CODES["checksum"]
KEPT_BYTES = 64 * 1024 * 1024
TOO_LARGE = (
    f"a script can keep bodies of at most {KEPT_BYTES >> 20} MiB: give keep_body=False for bodies "
    "that it does not read"
)


@dataclass(frozen=True)
class BodyRules:
    """How a body is judged: by a text it must hold, its CRC-32 (-1: any), and as a stream.

    ``kept`` says that it is kept as well.
    """

    text: bytes = b""
    crc32: int = -1
    kept: bool = False
    stream: Streaming | None = None


class Body:
    """One body, piece by piece."""

    __slots__ = ("_found", "_rules", "_sum", "_tail", "kept", "refused", "stream")

    def __init__(self, rules: BodyRules) -> None:
        self._rules = rules
        self._found = not rules.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self.kept = bytearray()
        self.stream = Streamed(rules.stream) if rules.stream is not None else None
        # The error class of a body that cannot be read on, and why.
        self.refused: tuple[str, str] | None = None

    def take(self, data: bytes | memoryview) -> None:
        """Look at the next piece; it may change afterwards."""
        rules = self._rules
        if not self._found:
            searched = self._tail + data
            self._found = rules.text in searched
            if not self._found:
                self._tail = searched[max(0, len(searched) - len(rules.text) + 1) :]
        if rules.crc32 >= 0:
            self._sum = zlib.crc32(data, self._sum)
        if rules.kept and self.refused is None:
            self.kept += data
            if len(self.kept) > KEPT_BYTES:
                self.refused = ("body_too_large", TOO_LARGE)
        if self.stream is not None:
            self.stream.take(bytes(data))
            self.refused = self.refused or self.stream.refused

    @property
    def fault(self) -> int:
        """Return the error code of a body that has ended: 0 when it is as expected."""
        if self._rules.crc32 not in (-1, self._sum):
            return CHECKSUM
        if not self._found:
            return BODY
        return self.stream.fault if self.stream is not None else 0
