"""The body of an answer: what is kept of it, and whether it is what was expected."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from perflab.load.clients.encodings import Unpacker
from perflab.load.clients.outcome import CODES
from perflab.load.clients.streams import Streamed, Streaming

STATUS, BODY, LENGTH, CHECKSUM = (CODES[name] for name in ("status", "body", "length", "checksum"))
# Head and body of a response.
HeadAndBody = tuple[bytes, bytes]
KEPT_BYTES = 64 * 1024 * 1024
TOO_LARGE = (
    f"a script can keep bodies of at most {KEPT_BYTES >> 20} MiB: give keep_body=False for bodies "
    "that it does not read"
)


@dataclass(frozen=True)
class BodyRules:
    """How a body is judged: by a text it must hold, CRC-32 and length (-1: any), and as a stream.

    ``kept`` says that it is kept as well.
    """

    text: bytes = b""
    crc32: int = -1
    length: int = -1
    kept: bool = False
    stream: Streaming | None = None


class Body:
    """One body, piece by piece; ``size`` is its length so far, unpacked."""

    __slots__ = ("_found", "_rules", "_sum", "_tail", "kept", "refused", "size", "stream",
                 "unpacker")  # fmt: skip

    def __init__(self, rules: BodyRules) -> None:
        self._rules = rules
        self._found = not rules.text
        # The text may begin in one piece and end in another.
        self._tail = b""
        self._sum = 0
        self.size = 0
        self.unpacker: Unpacker | None = None
        self.kept = bytearray()
        self.stream = Streamed(rules.stream) if rules.stream is not None else None
        # The error class of a body that cannot be read on, and why.
        self.refused: tuple[str, str] | None = None

    def take(self, data: bytes | memoryview) -> None:
        """Look at the next piece as it came; it may change afterwards."""
        for piece in (data,) if self.unpacker is None else self.unpacker.take(data):
            self._look(piece)

    def _look(self, data: bytes | memoryview) -> None:
        rules = self._rules
        self.size += len(data)
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
        if self.unpacker is not None and (problem := self.unpacker.problem):
            return CODES[problem[0]]
        if self._rules.length not in (-1, self.size):
            return LENGTH
        if self._rules.crc32 not in (-1, self._sum):
            return CHECKSUM
        if not self._found:
            return BODY
        return self.stream.fault if self.stream is not None else 0


def size_in_words(size: int, encoding: str, body: Body | None) -> str:
    """Return the length of a body in words, and why it was not unpacked."""
    text = f"{size} bytes" + (f" under {encoding:.80}" if encoding else "")
    if body is not None and body.unpacker is not None and (problem := body.unpacker.problem):
        text += f": {problem[1]}"
    return text
