"""Refusals: each has a code that a program can act on, and a reason for the reader."""

from __future__ import annotations

LONGEST_REASON = 300
# Where a code answers an HTTP request; over a WebSocket it stands in an error or a close frame.
STATUS = {"bad_request": 422, "wrong_login": 401, "users_connected": 409, "not_stored": 503}


class Refused(Exception):
    """Something a client asked for is refused."""

    def __init__(self, code: str, reason: str) -> None:
        # A reason may quote what a client sent; it must fit into a frame whatever that was.
        shown = reason.encode(errors="backslashreplace").decode()[:LONGEST_REASON]
        super().__init__(shown)
        self.code = code
        self.reason = shown
