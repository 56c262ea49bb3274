"""Unpacks bodies by their Content-Encoding (RFC 9110, 8.4), piece by piece as they arrive."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

# Only what comes out of so many bytes is held at a time, and it may not be more than the second. Of
# so many bytes deflate makes 4 MiB at most and zstandard 128 MiB; brotli knows no bound of its own.
BYTES_AT_ONCE, MOST_AT_ONCE = 4096, 64 << 20
TOO_MUCH = f"{BYTES_AT_ONCE} bytes become more than {MOST_AT_ONCE >> 20} MiB"
LIBRARIES = {
    "gzip": "zlib",
    "x-gzip": "zlib",
    "deflate": "zlib",
    "br": "brotli",
    "zstd": "zstandard",
}


def in_order(values: Iterable[str]) -> str:
    """Return the encodings that values of Content-Encoding name, in their order: ``gzip, br``."""
    names = (name.strip().lower() for name in ",".join(values).split(","))
    return ", ".join(name for name in names if name not in ("", "identity"))


@cache
def _library(name: str) -> Any:
    with suppress(KeyError, ImportError):
        return import_module(LIBRARIES[name])
    return None


class _Brotli:
    """A decompressor of brotli with the names that those of zlib have."""

    unused_data = b""

    def __init__(self) -> None:
        self._inner = _library("br").Decompressor()

    def decompress(self, data: bytes) -> bytes:
        unpacked = bytes(self._inner.process(data, output_buffer_limit=MOST_AT_ONCE + 1))
        if not self._inner.can_accept_more_data():
            raise ValueError(TOO_MUCH)
        return unpacked

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())


def _decompressor(name: str, first: int) -> Any:
    """Return a decompressor for data that begins with this byte."""
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _library(name).ZstdDecompressor().decompressobj()
    if name == "deflate":
        # Some servers leave out the header of RFC 1950: its first byte ends with an 8.
        return zlib.decompressobj(zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS)
    return zlib.decompressobj(zlib.MAX_WBITS + 16)


class Unpacker:
    """Unpacks one body."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        # Several encodings of one body have no library, either.
        self._is_known = _library(encoding) is not None
        self._member: Any = None
        self._broken = ""

    def take(self, packed: bytes | memoryview) -> Iterator[bytes]:
        """Yield what further bytes hold; nothing after a problem."""
        for at in range(0, len(packed), BYTES_AT_ONCE):
            if self._broken or not self._is_known:
                return
            try:
                data = self._unpacked(bytes(packed[at : at + BYTES_AT_ONCE]))
            except Exception as error:  # each library has its own
                self._broken, data = str(error), b""
            yield data

    def _unpacked(self, rest: bytes) -> bytes:
        unpacked = b""
        while rest:
            # A body may have several members or frames.
            if self._member is None or self._member.eof:
                self._member = _decompressor(self._encoding, rest[0])
            unpacked += self._member.decompress(rest)
            rest = self._member.unused_data
        if len(unpacked) > MOST_AT_ONCE:
            raise ValueError(TOO_MUCH)
        return unpacked

    @property
    def problem(self) -> tuple[str, str] | None:
        """Return why a body that has ended is not unpacked: error class and text."""
        if not self._is_known:
            package = LIBRARIES.get(self._encoding)
            way_out = f"install {package}, or ask" if package else "ask"
            text = f"nothing here unpacks Content-Encoding '{self._encoding:.80}'"
            return "encoding", f"{text}: {way_out} for another by the header Accept-Encoding"
        if self._broken or not (self._member is None or self._member.eof):
            why = self._broken or "it ends early"
            return "decoding", f"the body is not '{self._encoding}' as its head says: {why}"
        return None


def unpacked(body: bytes, encoding: str) -> tuple[bytes, str]:
    """Return a whole body unpacked, and why it could not be (empty where it could)."""
    unpacker = Unpacker(encoding)
    content = b"".join(unpacker.take(body))
    return content, unpacker.problem[1] if unpacker.problem else ""
