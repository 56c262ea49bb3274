"""Reads one HTTP/1.1 response after another from bytes; llhttp (through httptools) parses.

It takes bytes and uses no sockets. Lenient parsing is off.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import httptools

from perflab.load.clients.body import Body, BodyRules
from perflab.load.clients.encodings import Unpacker, in_order
from perflab.load.clients.outcome import Failed

MAX_HEAD_BYTES = 64 * 1024
MAX_INTERIMS = 20
# A body is long if at least so many of its bytes are still to come.
LONG_BYTES = 64 * 1024
MAX_PHASES = 64
LONGEST_PHASE_MS = 1e9
CODING = b"\r\ntransfer-encoding:"
_LENGTH = re.compile(rb"\r\ncontent-length:", re.IGNORECASE)
# The length in a line of the simplest form; the parser has refused a second such line.
_LENGTH_ALONE = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})(?:\r\n[!-~]|$)", re.IGNORECASE)


class BadResponse(Failed):
    """The bytes that arrived are not a response."""


class ResponseReader:
    """The state of one response on a connection.

    The body is judged by ``rules``; without them its bytes are only counted. ``size`` is the number
    of its bytes so far, less its framing; ``left`` those still to come of a long body with a
    length, which the parser need not see.
    """

    def __init__(self, rules: BodyRules | None = None) -> None:
        self._parser: Any = None
        self.rules = rules
        self.begin()

    def begin(self) -> None:
        """Expect the next response."""
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
        self.fresh = True
        self.complete = self.keep_alive = False
        self.status = self.size = self.left = 0
        # What arrived until the end of the head, and the head in it.
        self._raw, self._head = b"", b""
        self._head_done = self._chunked = self._stays = False
        self._interims = 0
        self.body = Body(self.rules) if self.rules is not None else None
        # The body as it comes, unless it is long.
        self.pieces: list[bytes] = []
        self._refused = self.encoding = ""

    def release(self) -> None:
        """Drop the body and the parser, whose cycle nothing collects: workers run without gc."""
        self._parser = self.body = None

    def give_body(self) -> bytes:
        """Return the body, if it was kept, and drop it."""
        body, self.body = self.body, None
        return bytes(body.kept) if body is not None else b""

    def feed(self, data: bytes) -> bool:
        """Take bytes that arrived; return whether the response is complete.

        Raises BadResponse where the bytes are not a response, or go on after its end.
        """
        if self.left:
            return self.take(memoryview(data))
        self.fresh = False
        in_head = not self._head_done
        if in_head:
            self._raw += data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise BadResponse(
                "protocol", "the server switched protocols, which no request asked for"
            ) from None
        except httptools.HttpParserError as error:
            raise BadResponse("protocol", str(error)) from None
        if self._refused:
            raise BadResponse("protocol", self._refused)
        if in_head and (self._head_done or len(self._raw) > MAX_HEAD_BYTES):
            self._check_head()
        if self.body is not None and self.body.refused is not None:
            raise BadResponse(*self.body.refused)
        if in_head and self._head_done and not self.complete:
            self._begin_long()
        return self.complete

    def _begin_long(self) -> None:
        """Bypass the parser for the rest of a long body that is only counted and summed."""
        rules = self.rules
        if self._chunked or (rules and (rules.kept or rules.stream)):
            return
        length = _LENGTH_ALONE.search(self.head)
        left = int(length[1]) - self.size if length else 0
        if left >= LONG_BYTES:
            self.left = left
            self._stays = bool(self._parser.should_keep_alive())
            # The parser waits for bytes that it will not see: the next response gets a new one.
            self._parser = None

    def take(self, data: memoryview) -> bool:
        """Take bytes of a long body (see :attr:`left`); they may change afterwards.

        Return whether the response is complete; raises like :meth:`feed`.
        """
        left, number = self.left, len(data)
        if self.body is not None:
            self.body.take(data[:left])
        self.left = max(0, left - number)
        self.size += min(left, number)
        if number > left:
            raise BadResponse("protocol", "bytes came after the end of the response")
        if not self.left:
            self.complete, self.keep_alive = True, self._stays
        return self.complete

    def _check_head(self) -> None:
        """Refuse heads that the parser accepts and that are no head of a response here."""
        if not self._head_done:
            raise BadResponse("head_too_large", f"no end of headers in {MAX_HEAD_BYTES} bytes")
        head = self.head
        if len(head) > MAX_HEAD_BYTES:
            raise BadResponse("head_too_large", f"headers of more than {MAX_HEAD_BYTES} bytes")
        # The parser also reads RTSP and ICE, and empty lines before the status line.
        if head[:5] != b"HTTP/":
            raise BadResponse("protocol", "the response does not begin with HTTP/")
        if 0 in head:
            raise BadResponse("protocol", "a NUL in the head")
        if not (self.complete or self._chunked) and CODING in head.lower():
            self._begin_chunks()
            if self._refused:
                raise BadResponse("protocol", self._refused)

    def _begin_chunks(self) -> None:
        self._chunked = True
        # We send no TE, so no other coding may come (RFC 9112, 7.4). With another coding, or a tab
        # after the name, the parser would read the body to the end of the connection.
        codings = self.head.lower().split(CODING)[1:]
        if len(codings) != 1 or codings[0].partition(b"\r")[0].strip(b" ") != b"chunked":
            self._refused = "a transfer coding other than chunked"

    def end(self, is_said: bool = True) -> str:
        """Take the end of the data; return the error class, or '' when it ends the response.

        Over TLS the peer says it (close_notify): data that just ends may have been cut off, and is
        no response unless its length or last chunk has come (RFC 9112, 9.8).
        """
        if self.fresh:
            return "closed"
        if not self._head_done:
            return "truncated"
        if self._chunked or _LENGTH.search(self.head):
            return "truncated"
        if not is_said:
            return "no_close_notify"
        self.complete, self.keep_alive = True, False
        return ""

    @property
    def head(self) -> bytes:
        """Return status line and headers."""
        if not self._head:
            self._head, self._raw = self._raw.partition(b"\r\n\r\n")[0], b""
        return self._head

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Refuse a second message: no request asked for it."""
        if self.complete:
            self._refused = "bytes came after the end of the response"

    def on_headers_complete(self) -> None:
        """Take status and version at the end of the headers."""
        if self._refused:
            return
        self.status = self._parser.get_status_code()
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refused = f"HTTP/{version} in answer to HTTP/1.1"
        elif self.status < 100:
            self._refused = f"{self.status:03} is not a status code"
        self._head_done = self.status >= 200 or self.status == 101
        if self._head_done and (encoding := encoding_of(self.head)):
            self.encoding = encoding
            if self.body is not None:
                self.body.unpacker = Unpacker(encoding)

    def on_chunk_header(self) -> None:
        """Check the transfer coding when a chunk begins."""
        if not self._chunked and not self._refused:
            self._begin_chunks()

    def on_body(self, data: bytes) -> None:
        """Take a part of the body, without chunk framing."""
        if not self._refused:
            self.size += len(data)
            if self.body is not None:
                self.body.take(data)
            if self.size <= LONG_BYTES:
                self.pieces.append(data)

    def on_message_complete(self) -> None:
        """End the message; after an interim one (1xx) the response is still to come."""
        if self._refused:
            return
        if self._head_done:
            self.complete = True
            self.keep_alive = bool(self._parser.should_keep_alive())
            return
        self._interims += 1
        if self._interims > MAX_INTERIMS:
            self._refused = f"more than {MAX_INTERIMS} interim responses"
            return
        if self._raw[:5] != b"HTTP/":
            self._refused = "the response does not begin with HTTP/"
            return
        self._raw = self._raw.partition(b"\r\n\r\n")[2]
        self.size = 0


def parse_server_timing(header: str) -> dict[str, float]:
    """Read a ``Server-Timing`` header: metric name to duration in ms.

    Durations of one name are added up. Source: W3C Server Timing, the header field. It leaves out
    entries without ``dur``, names beyond printable ASCII, impossible durations (negative, infinite,
    above 11 days), and all phases after the first 64.
    """
    phases: dict[str, float] = {}
    for entry in header.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        if len(phases) == MAX_PHASES and name not in phases:
            continue
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name and name.isascii() and name.isprintable():
                try:
                    duration_ms = float(value.strip().strip('"'))
                except ValueError:
                    continue
                if 0 <= duration_ms <= LONGEST_PHASE_MS:
                    phases[name] = phases.get(name, 0.0) + duration_ms
                # Of a parameter that stands twice, the first counts.
                break
    return phases


def header(head: bytes, name: str) -> str:
    """Return a header's first value, or an empty string."""
    return next(iter(values(head, name)), "")


def values(head: bytes, name: str) -> list[str]:
    """Return all values of a header, in their order."""
    return [value.decode("latin-1").strip() for value in _lines_of(name).findall(head)]


@cache
def _lines_of(name: str) -> re.Pattern[bytes]:
    line = rb"\r\n" + re.escape(name.encode()) + rb"[ \t]*:[ \t]*([^\r]*)"
    return re.compile(line, re.IGNORECASE)


def encoding_of(head: bytes) -> str:
    """Return what a response's body went through, like ``in_order``."""
    if b"content-encoding" not in head.lower():
        return ""
    return in_order(values(head, "content-encoding"))


def server_phases(head: bytes) -> dict[str, float] | None:
    """Return the phases of ``Server-Timing``, or None without the header."""
    if b"erver-" not in head and b"erver-" not in head.lower():
        return None
    timings = _lines_of("server-timing").findall(head)
    return parse_server_timing(b",".join(timings).decode("latin-1")) if timings else None
