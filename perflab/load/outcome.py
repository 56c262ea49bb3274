"""The outcome of a request: its error class, and the record that travels with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.load.body import Kept
    from perflab.load.connection import Connection
    from perflab.load.prepared import Prepared

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
    "body_too_large",  # a body that a script is to read, and no room to keep it
    "not_read",  # a WebSocket's server does not read what it is sent
)
CODES = {name: code for code, name in enumerate(ERRORS)}
STAGES = ("warmup", "measure")
WARMUP, MEASURE = 0, 1


class Exchange:
    """One request under way: its instants (CLOCK_MONOTONIC, ns; 0: never came) and outcome.

    Made once per user or slot and used again; ``finish`` is called when it is done. ``answer`` is
    the head of the response and its body, where the request wants them.
    """

    __slots__ = (
        "answer",
        "bytes",
        "chain",
        "connect_ns",
        "connection",
        "done_ns",
        "error",
        "finish",
        "first_byte_ns",
        "phases",
        "planned_ns",
        "prepared",
        "redirects",
        "sent_ns",
        "stage",
        "started_ns",
        "status",
        "template",
        "user",
    )

    def __init__(self, prepared: Prepared, user: int, finish: Callable[[Exchange], None]) -> None:
        self.prepared = prepared
        self.user = user
        self.finish = finish
        self.stage = MEASURE
        self.template = 0
        self.connection: Connection | None = None
        self.planned_ns = self.started_ns = self.done_ns = 0
        self.status = self.bytes = self.error = self.redirects = 0
        self.phases: dict[str, float] | None = None
        self.chain: tuple[Prepared, int, int] | None = None
        self.answer: tuple[bytes, Kept | None] | None = None
        self.renew()

    def renew(self) -> None:
        """Forget the instants that the next request may not come to; its end sets the rest."""
        self.sent_ns = self.first_byte_ns = self.connect_ns = 0

    def end_chain(self) -> None:
        """Give a chain of redirects the request it began with, and the instant of its sending."""
        if self.chain is not None:
            self.prepared, self.sent_ns, self.connect_ns = self.chain
            self.chain = None
            self.redirects = 0
