"""Refusals: each has a code that a program can act on, and a reason for the reader."""

from __future__ import annotations

LONGEST_REASON = 300


class Refused(Exception):
    """Something a client asked for is refused; ``status`` is its HTTP status."""

    code = "refused"
    status = 400

    def __init__(self, reason: str) -> None:
        # A reason may quote what a client sent; it must fit into a frame whatever that was.
        shown = reason.encode(errors="backslashreplace").decode()[:LONGEST_REASON]
        super().__init__(shown)
        self.reason = shown


class BadRequest(Refused):
    """The body or query of an HTTP request is wrong."""

    code = "bad_request"
    status = 422


class BadFrame(Refused):
    """A frame cannot be read, or is of a kind that clients do not send."""

    code = "bad_frame"


class TooLarge(Refused):
    """A frame is longer than the service takes."""

    code = "too_large"


class UnknownChannel(Refused):
    """There is no such channel."""

    code = "unknown_channel"
    status = 404


class NotSubscribed(Refused):
    """Only subscribers write to a channel."""

    code = "not_subscribed"


class NotStored(Refused):
    """The database did not take it."""

    code = "not_stored"
    status = 503


class WrongLogin(Refused):
    """No such user, or another password."""

    code = "wrong_login"
    status = 401


class TooManyLogins(Refused):
    """Logins fail, and many wait to be verified."""

    code = "too_many_logins"
    status = 429


class ForeignPage(Refused):
    """A page of another origin asks for something."""

    code = "foreign_page"
    status = 403


class MissingToken(Refused):
    """No token was given."""

    code = "missing_token"
    status = 401


class WrongToken(Refused):
    """The token was never given out."""

    code = "wrong_token"
    status = 401


class ExpiredToken(Refused):
    """The token's time is over."""

    code = "expired_token"
    status = 401


class UsersConnected(Refused):
    """What is asked for needs a service without users."""

    code = "users_connected"
    status = 409
