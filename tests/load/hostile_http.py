"""Seventy HTTP servers that do everything wrong, and what each client makes of them.

Outcomes are those of RFC 9112: what a recipient must not take for a response is an error, what it
may take is a success. Where a library reads on what the lean client refuses, the row says so.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from tests.load.hostile import ENDLESS, OK, End, Part, Script

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BLOCK = BOMB.compress(bytes(1 << 26)) + BOMB.flush()
SLOW_S = 0.05


def whole(status: int, *headers: bytes, body: bytes = b"ok") -> bytes:
    """Return a response with a length."""
    lines = [b"HTTP/1.1 %d Some" % status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


# Libraries tell an early end from a late one less finely, and read on in some cases.
READ_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "half a status line": {"aiohttp": "closed", "httpx": "closed"},
    "a head without an end": {"aiohttp": "closed", "httpx": "closed"},
    "garbage for ever": {"httpx": "head_too_large"},
    "a folded line": {"aiohttp": "", "httpx": ""},
    "bare line feeds": {"aiohttp": "", "httpx": ""},
    "HTTP/0.9": {"httpx": "closed"},
    "HTTP/2.0": {"aiohttp": "", "httpx": ""},
    "RTSP": {"aiohttp": ""},
    "status 99": {"aiohttp": "status"},
    "empty lines for ever": {"aiohttp": "timeout", "httpx": "protocol"},
    "101 unasked": {"aiohttp": "status"},
    "100 for ever": {"httpx": "timeout"},
    "100, then nothing": {"aiohttp": "closed", "httpx": "closed"},
    "length and chunks": {"httpx": ""},
    "a reset in the body": {"aiohttp": "truncated"},
    "a body too long": {"httpx": ""},
    "two answers": {"aiohttp": "", "httpx": ""},
    "an answer, then garbage": {"httpx": ""},
    "a chunk of 2**70": {"httpx": "truncated"},
    "an extension for ever": {"httpx": "head_too_large"},
    "a trailer for ever": {"aiohttp": "head_too_large", "httpx": "head_too_large"},
    "gzip, chunked": {"aiohttp": ""},
}


@dataclass(frozen=True)
class Peer:
    """A server: its name, what it plays, and the outcome of a request to it."""

    name: str
    script: Script
    outcome: str

    @property
    def floods(self) -> bool:
        """Whether it sends without an end and without a pause, and so takes others their time."""
        return any(part.times == ENDLESS and not part.pause_s for part in self.script.parts)

    def outcome_for(self, client: str) -> str:
        """Return the error class that a client must give a request to it; '' for none."""
        return READ_OTHERWISE.get(self.name, {}).get(client, self.outcome)


def sends(name: str, outcome: str, *parts: bytes | Part, end: End = "close") -> Peer:
    """Return a peer that reads the request, sends parts, and ends."""
    made = tuple(part if isinstance(part, Part) else Part(part) for part in parts)
    return Peer(name, Script(made, end), outcome)


HEADS = (
    sends("nothing, then closes", "closed"),
    sends("nothing, then resets", "reset", end="reset"),
    sends("nothing at all", "timeout", end="hang"),
    sends("half a status line", "truncated", b"HTTP/1.1 20"),
    sends("half a status line, then silence", "timeout", b"HTTP/1.1 20", end="hang"),
    sends("a head without an end", "truncated", HEAD + b"A: b\r\n"),
    sends("a head without an end, then silence", "timeout", HEAD + b"A: b\r\n", end="hang"),
    sends("a head, then a reset", "reset", Part(HEAD), Part(b"", 0.1), end="reset"),
    sends("a status line byte by byte", "timeout", Part(HEAD), Part(b"x", SLOW_S, ENDLESS)),
    sends("headers for ever, slowly", "timeout", HEAD, Part(b"A: b\r\n", SLOW_S, ENDLESS)),
    sends("headers for ever", "head_too_large", HEAD, Part(b"X-Again: yes\r\n" * 99, 0, ENDLESS)),
    sends("one header for ever", "head_too_large", HEAD + b"A: ", Part(b"x" * 9999, 0, ENDLESS)),
    sends("a header of 300 kB", "head_too_large", whole(200, b"A: " + b"x" * 300_000)),
    sends("30,000 headers", "head_too_large", whole(200, *[b"A: %d" % n for n in range(30_000)])),
    sends("a header name of 300 kB", "head_too_large", whole(200, b"x" * 300_000 + b": a")),
    sends("a status line of 300 kB", "head_too_large", b"HTTP/1.1 200 " + b"x" * 300_000, OK),
    sends("garbage", "protocol", b"garbage\r\n\r\n"),
    sends("garbage for ever", "protocol", Part(b"\xff\x00garbage" * 999, 0, ENDLESS)),
    sends("HTML without a head", "protocol", b"<html>hello</html>\r\n\r\n"),
    sends("a NUL in a value", "protocol", whole(200, b"A: b\x00c")),
    sends("a NUL in a name", "protocol", whole(200, b"A\x00: b")),
    sends("a space before the colon", "protocol", whole(200, b"A : b")),
    sends("a line without a colon", "protocol", whole(200, b"no colon here")),
    sends("a folded line", "protocol", whole(200, b"A: b\r\n folded")),
    sends("bare line feeds", "protocol", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    sends("HTTP/0.9", "protocol", b"just a body"),
    sends("HTTP/2.0", "protocol", b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    sends("HTTP/2 frames", "protocol", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
    sends("RTSP", "protocol", b"RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    sends("a TLS alert", "protocol", b"\x15\x03\x01\x00\x02\x02\x46"),
    sends("a status of letters", "protocol", b"HTTP/1.1 2x0 OK\r\n\r\n"),
    sends("status 99", "protocol", b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n"),
    sends("status 2000", "protocol", b"HTTP/1.1 2000 High\r\nContent-Length: 0\r\n\r\n"),
    sends("status 999", "status", whole(999)),
    sends("status 404", "status", whole(404)),
    sends("empty lines for ever", "head_too_large", Part(b"\r\n" * 999, 0, ENDLESS)),
    sends("101 unasked", "protocol", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
          b"Connection: upgrade\r\n\r\n", end="hang"),
    sends("100 for ever", "protocol", Part(b"HTTP/1.1 100 Continue\r\n\r\n" * 99, 0, ENDLESS)),
    sends("100, then nothing", "truncated", b"HTTP/1.1 100 Continue\r\n\r\n"),
    sends("103, then an answer", "", b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" + OK),
    sends("a redirect to itself", "status", b"HTTP/1.1 302 Found\r\nLocation: /\r\n"
          b"Content-Length: 0\r\n\r\n"),
)  # fmt: skip

LENGTHS = (
    sends("a negative length", "protocol", HEAD + b"Content-Length: -2\r\n\r\nok"),
    sends("a length with a plus", "protocol", HEAD + b"Content-Length: +2\r\n\r\nok"),
    sends("a length in hex", "protocol", HEAD + b"Content-Length: 0x2\r\n\r\nok"),
    sends("a length of 2**70", "protocol", HEAD + b"Content-Length: %d\r\n\r\nok" % (1 << 70)),
    sends("an empty length", "protocol", HEAD + b"Content-Length: \r\n\r\nok"),
    sends("two lengths", "protocol", HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nok"),
    sends("length and chunks", "protocol", HEAD + b"Content-Length: 2\r\n"
          b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    sends("a body too short", "truncated", HEAD + b"Content-Length: 9\r\n\r\nok"),
    sends("a body that stops", "timeout", HEAD + b"Content-Length: 9\r\n\r\nok", end="hang"),
    sends("a reset in the body", "reset", HEAD + b"Content-Length: 9\r\n\r\nok", Part(b"", 0.1),
          end="reset"),
    sends("a body too long", "protocol", OK + b"too long"),
    sends("two answers", "protocol", OK + OK),
    sends("an answer, then garbage", "protocol", OK + b"\x00garbage"),
    sends("a body to the end", "", HEAD + b"\r\nto the end"),
    sends("a body drop by drop", "timeout", HEAD + b"\r\n", Part(b"x", SLOW_S, ENDLESS)),
)  # fmt: skip

BODIES = (
    sends("a body for ever", "timeout", HEAD + b"\r\n", Part(bytes(1 << 16), 0, ENDLESS)),
    sends("a terabyte", "timeout", HEAD + b"Content-Length: %d\r\n\r\n" % (1 << 40),
          Part(bytes(1 << 16), 0, ENDLESS)),
    sends("chunks for ever", "timeout", CHUNKED,
          Part(b"ffff\r\n%s\r\n" % bytes(65_535), 0, ENDLESS)),
    sends("chunks of one byte for ever", "timeout", CHUNKED, Part(b"1\r\nx\r\n" * 999, 0, ENDLESS)),
    sends("a chunk of 2**70", "protocol", CHUNKED + b"f" * 18 + b"\r\n"),
    sends("a chunk of zz", "protocol", CHUNKED + b"zz\r\nok\r\n"),
    sends("a chunk of -2", "protocol", CHUNKED + b"-2\r\nok\r\n0\r\n\r\n"),
    sends("a chunk too long", "protocol", CHUNKED + b"2\r\nokk\r\n0\r\n\r\n"),
    sends("chunks cut", "truncated", CHUNKED + b"5\r\nab"),
    sends("no last chunk", "truncated", CHUNKED + b"2\r\nok\r\n"),
    sends("an extension for ever", "timeout", CHUNKED + b"2;", Part(b"x" * 9999, 0, ENDLESS)),
    sends("a trailer for ever", "timeout", CHUNKED + b"0\r\n", Part(b"A: b\r\n" * 99, 0, ENDLESS)),
    sends("gzip, chunked", "protocol", HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n"
          b"2\r\nok\r\n0\r\n\r\n"),
    sends("a gzip bomb", "", HEAD + b"Content-Encoding: gzip\r\n\r\n", Part(BLOCK, 0, 32)),
    sends("garbage called gzip", "", whole(200, b"Content-Encoding: gzip")),
    sends("garbage called brotli", "", whole(200, b"Content-Encoding: br")),
    sends("gzip of gzip", "",
          whole(200, b"Content-Encoding: gzip, gzip", body=gzip.compress(BLOCK))),
    sends("a hundred cookies", "", whole(200, *[b"Set-Cookie: a%d=b" % n for n in range(100)])),
)  # fmt: skip

PEERS = (*HEADS, *LENGTHS, *BODIES)
