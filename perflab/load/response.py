"""Reads one HTTP/1.1 response after another from bytes; llhttp (through httptools) parses.

No sockets here: bytes go in, what they mean comes out. Lenient parsing is off.
"""

from __future__ import annotations

import re
from typing import Any

import httptools

MAX_HEAD_BYTES = 64 * 1024
MAX_INTERIMS = 20
_FRAMING = re.compile(
    rb"\r\n(content-length|transfer-encoding)[ \t]*:[ \t]*([^\r]*)", re.IGNORECASE
)
_TIMING = re.compile(rb"\r\nserver-timing[ \t]*:[ \t]*([^\r]*)", re.IGNORECASE)


class BadResponse(Exception):
    """What arrived is not a response; ``kind`` is its error class."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def parse_server_timing(header: str) -> dict[str, float]:
    """Read a ``Server-Timing`` header: metric name to duration in ms.

    Source: W3C Server Timing, the header field. Entries without ``dur`` are left out.
    """
    phases = {}
    for entry in header.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name:
                try:
                    phases[name] = float(value.strip().strip('"'))
                except ValueError:
                    continue
    return phases


class ResponseReader:
    """The state of one response on a connection.

    Parameters
    ----------
    keep_body : bool
        Collect the body in :attr:`body`; else it is only counted.

    Attributes
    ----------
    complete, keep_alive : bool
        The response has ended; the connection may be used again.
    status, size : int
        Status code, and bytes of the decoded body so far.
    """

    def __init__(self, keep_body: bool = False) -> None:
        self._parser: Any = None
        self.keep_body = keep_body
        self.begin()

    def begin(self, bodiless: bool = False) -> None:
        """Expect the next response; ``bodiless`` when it answers a HEAD request."""
        if self._parser is None or bodiless:
            self._parser = httptools.HttpResponseParser(self)
        self._bodiless = bodiless
        self.fresh = True
        self.complete = self.keep_alive = False
        self.status = self.size = 0
        self._head: bytes | None = None
        self._pieces: list[bytes] = []
        self._head_done = self._again = False
        self._chunks: list[bytes] = []
        self._interims = 0
        self._version = ""

    def release(self) -> None:
        """Let go of the parser, which refers back to here: the collector is off under load."""
        self._parser = None

    def feed(self, data: bytes) -> bool:
        """Take bytes that arrived; return whether the response is complete.

        Raises
        ------
        BadResponse
            The bytes are not a response, or go on after its end.
        """
        self.fresh = False
        if not self._head_done:
            self._pieces.append(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise BadResponse("protocol", "the server switched protocols unasked") from None
        except httptools.HttpParserError as error:
            if self._bodiless and self._head_done:
                raise BadResponse("protocol", "a body came in answer to HEAD") from None
            raise BadResponse("protocol", str(error)) from None
        if self._interims > MAX_INTERIMS:
            raise BadResponse("protocol", f"more than {MAX_INTERIMS} interim responses")
        if self._version not in ("", "1.1", "1.0"):
            raise BadResponse("protocol", f"HTTP/{self._version} in answer to HTTP/1.1")
        if not self._head_done:
            if sum(map(len, self._pieces)) > MAX_HEAD_BYTES:
                raise BadResponse("head_too_large", f"no end of headers in {MAX_HEAD_BYTES} bytes")
            return False
        if self._pieces and len(self.head) > MAX_HEAD_BYTES:
            raise BadResponse("head_too_large", f"headers of more than {MAX_HEAD_BYTES} bytes")
        if self._again:
            raise BadResponse("protocol", "bytes came after the end of the response")
        if self._bodiless:
            self._end_bodiless()
        return self.complete

    def _end_bodiless(self) -> None:
        if self.size:
            raise BadResponse("protocol", "a body came in answer to HEAD")
        self.complete, self.keep_alive = True, bool(self._parser.should_keep_alive())
        # The parser waits for the body that the headers announce; a new one takes its place.
        self._parser = None

    def end(self) -> str:
        """The peer closed: return the error class, or '' when the response ends with it."""
        if self.fresh:
            return "closed"
        if not self._head_done:
            return "truncated"
        framing = {name.lower(): value.lower() for name, value in _FRAMING.findall(self.head)}
        if b"content-length" in framing or framing.get(b"transfer-encoding", b"").endswith(
            b"chunked"
        ):
            return "truncated"
        self.complete, self.keep_alive = True, False
        return ""

    @property
    def head(self) -> bytes:
        """Return status line and headers."""
        if self._head is None:
            data = b"".join(self._pieces)
            self._pieces.clear()
            end = data.find(b"\r\n\r\n")
            self._head = data[:end] if end >= 0 else data
        return self._head

    @property
    def body(self) -> bytes:
        """Return the body, if it was kept."""
        return b"".join(self._chunks)

    def header(self, name: str) -> str:
        """Return a header's first value, or an empty string."""
        found = re.search(
            rb"\r\n" + re.escape(name.encode()) + rb"[ \t]*:[ \t]*([^\r]*)",
            self.head,
            re.IGNORECASE,
        )
        return found[1].decode("latin-1").strip() if found else ""

    def phases(self) -> dict[str, float] | None:
        """Return the phases of ``Server-Timing``, or None without the header."""
        head = self.head
        if b"erver-" not in head and b"erver-" not in head.lower():
            return None
        values = _TIMING.findall(head)
        if not values:
            return None
        return parse_server_timing(b",".join(values).decode("latin-1"))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A second message begins: nobody asked for it."""
        self._again = self.complete

    def on_headers_complete(self) -> None:
        """The headers have ended."""
        status = self._parser.get_status_code()
        if not self._again:
            self.status = status
            self._version = self._parser.get_http_version()
            self._head_done = status >= 200 or status == 101

    def on_body(self, data: bytes) -> None:
        """A part of the body, with its chunk framing removed."""
        if not self._again:
            self.size += len(data)
            if self.keep_body:
                self._chunks.append(data)

    def on_message_complete(self) -> None:
        """The message has ended; after an interim one (1xx) the response is still to come."""
        if self._again:
            return
        if self.status < 200 and self.status != 101:
            end = b"".join(self._pieces).find(b"\r\n\r\n")
            self._pieces = [b"".join(self._pieces)[end + 4 :]]
            self._interims += 1
            return
        self.complete = True
        self.keep_alive = bool(self._parser.should_keep_alive())
