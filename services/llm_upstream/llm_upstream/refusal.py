"""What a request can be refused for; each API tells it in its own format."""

from __future__ import annotations


class Refused(Exception):
    """A request that is answered with a status and a reason.

    ``code`` is the word that OpenAI's format has for it, and what the counts go by.
    """

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason


class ReaderGone(Exception):
    """Nobody reads the answer any more."""


def bad_request(reason: str) -> Refused:
    """Return the refusal of a request that cannot be understood."""
    return Refused(400, "invalid_request", reason)
