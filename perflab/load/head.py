"""The head of an HTTP/1.1 response as bytes: what it says, and what makes it none."""

from __future__ import annotations

import re

MAX_PHASES = 64
LONGEST_PHASE_MS = 1e9
CODING = b"\r\ntransfer-encoding:"
_LENGTH = re.compile(rb"\r\ncontent-length:", re.IGNORECASE)
# The number, where its line is as simple as can be; the parser has refused a second one.
_LENGTH_ALONE = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})(?:\r\n[!-~]|$)", re.IGNORECASE)
_TIMING = re.compile(rb"\r\nserver-timing:[ \t]*([^\r]*)", re.IGNORECASE)


def parse_server_timing(header: str) -> dict[str, float]:
    """Read a ``Server-Timing`` header: metric name to duration in ms.

    Source: W3C Server Timing, the header field. Left out are entries without ``dur``, names beyond
    printable ASCII, durations that are none (negative, infinite, above 11 days), and all phases
    after the first 64.
    """
    phases: dict[str, float] = {}
    for entry in header.split(","):
        if len(phases) == MAX_PHASES:
            break
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name and name.isascii() and name.isprintable():
                try:
                    duration_ms = float(value.strip().strip('"'))
                except ValueError:
                    continue
                if 0 <= duration_ms <= LONGEST_PHASE_MS:
                    phases[name] = duration_ms
    return phases


class BadResponse(Exception):
    """What arrived is not a response; ``kind`` is its error class."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def not_a_head(head: bytes) -> str:
    """Return why a head that the parser lets pass is none of HTTP's; empty where it is one."""
    # The parser also reads RTSP and ICE, and empty lines before the status line.
    if head[:5] != b"HTTP/":
        return "the response does not begin with HTTP/"
    return "a NUL in the head" if 0 in head else ""


def in_coding(head: bytes) -> bool:
    """Tell whether a transfer coding is named."""
    return CODING in head.lower()


def coding_problem(head: bytes) -> str:
    """Return why the body's transfer coding is refused; empty where it is chunked alone."""
    # We send no TE, so no other coding may come (RFC 9112, 7.4). The parser would take a body
    # in another one, or with a tab after the name, for one that ends with the stream.
    codings = head.lower().split(CODING)[1:]
    if len(codings) != 1 or codings[0].partition(b"\r")[0].strip(b" ") != b"chunked":
        return "a transfer coding other than chunked"
    return ""


def announces_length(head: bytes) -> bool:
    """Tell whether the body's length is announced."""
    return _LENGTH.search(head) is not None


def length_alone(head: bytes) -> int:
    """Return the body's announced length; 0 where its line is not of the simplest form."""
    found = _LENGTH_ALONE.search(head)
    return int(found[1]) if found else 0


def header(head: bytes, name: str) -> str:
    """Return a header's first value, or an empty string."""
    found = re.search(
        rb"\r\n" + re.escape(name.encode()) + rb"[ \t]*:[ \t]*([^\r]*)", head, re.IGNORECASE
    )
    return found[1].decode("latin-1").strip() if found else ""


def server_phases(head: bytes) -> dict[str, float] | None:
    """Return the phases of ``Server-Timing``, or None without the header."""
    if b"erver-" not in head and b"erver-" not in head.lower():
        return None
    values = _TIMING.findall(head)
    if not values:
        return None
    return parse_server_timing(b",".join(values).decode("latin-1"))
