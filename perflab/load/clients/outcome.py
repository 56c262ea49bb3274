"""Error classes and stages of requests, their codes, and the first text of each failure."""

from __future__ import annotations

from perflab.statistics import CENSORED

# The order is the code in raw recordings. A request has one class, that of its first failure.
ERRORS = (
    "",
    "connect",  # refused, or no route
    "timeout",
    "reset",  # the peer reset the connection
    "protocol",  # not HTTP/1.1 as RFC 9112 has it
    "status",  # another status than expected
    "body",  # another body than expected
    "dns",
    "tls",
    "closed",  # the peer closed before the first byte of the response
    "truncated",  # the peer closed in the middle of the response
    "head_too_large",
    "ports",  # no local port left
    "files",  # no file descriptor left
    "redirect",  # too many, malformed, or to a host that is not allowed
    "aborted",  # under way when the load was stopped
    "unsent",  # planned, but the load was stopped before it was sent
    "script",  # a scripted user's own code failed
    "handshake",  # the server did not agree to speak WebSocket
    "message_too_big",  # a WebSocket message above the limit
    "ws_closed",  # the server ended a WebSocket that was in use
    "body_too_large",  # a body that a script is to read, above the limit
    "not_read",  # a WebSocket's server does not read what it is sent
    "length",  # a body of another length than expected
    "checksum",  # a body of another checksum than expected
    "stream_short",  # fewer chunks than a stream must have
    "stream_unended",  # a stream whose last event is not its end marker
    "event_too_long",  # an event of a stream above the limit
    "stream_too_long",  # a stream of more chunks than the limit
    "encoding",  # a body under a Content-Encoding that nothing here unpacks
    "decoding",  # a body that is not what its Content-Encoding says
    "no_close_notify",  # TLS data that just ended, where only its end could end the response
    "machine",  # no memory, no buffers or no right on the client's machine
    "silent",  # a WebSocket whose server sent nothing, and answered no ping
)
CODES = {name: code for code, name in enumerate(ERRORS)}
CENSORED_CODES = tuple(CODES[name] for name in CENSORED)
# The load's end cut them off: neither a success nor a fault of the server.
CUT_OFF = ("aborted", "unsent")
CUT_OFF_CODES = tuple(CODES[name] for name in CUT_OFF)
# The stage of a measured request during which its service was paused: see perflab.trials.slices.
PAUSED = "paused"
# `after`: requests that keep a load up beyond its plan, or that scripts send after its end.
# `after_stop`: requests that ended after the failure that ended the load (see
# perflab.load.records.failure_stop).
STAGES = ("warmup", "measure", "after", "after_stop")
WARMUP, MEASURE, AFTER, AFTER_STOP = range(len(STAGES))
MOST_KINDS = 32
LONGEST_TEXT = 300


class Failed(Exception):
    """A request or its connection failed; ``kind`` is the error class."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason or kind)
        self.kind = kind


class FirstErrors:
    """Texts by error class and status; bounded, so that no server can fill the memory.

    It is called only when a request fails: successes pay nothing for it.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], str] = {}

    def note(self, kind: str, text: str, status: int = 0) -> None:
        """Keep the text if it is the first of its kind; control characters become spaces."""
        if (kind, status) in self._texts or len(self._texts) == MOST_KINDS:
            return
        printable = "".join(sign if sign.isprintable() else " " for sign in text[:LONGEST_TEXT])
        self._texts[kind, status] = " ".join(printable.split())

    def texts(self) -> list[tuple[str, int, str]]:
        """Return (class, status, text) of each kind."""
        return [(kind, status, text) for (kind, status), text in self._texts.items()]
