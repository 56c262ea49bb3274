"""What a request is refused for, also the one that sets counts back."""

from __future__ import annotations


class Refused(Exception):
    """A request that is answered with a status, a code, and a reason."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason


def check_reset(content_type: str, under_way: int) -> None:
    """Raise Refused for a reset that must not be.

    It wants a JSON content type, which a web page of another origin cannot send unasked.
    """
    if content_type.partition(";")[0].strip() != "application/json":
        raise Refused(403, "foreign_page", "send Content-Type: application/json")
    if under_way:
        raise Refused(409, "under_way", f"{under_way} requests are under way: ask after them")
