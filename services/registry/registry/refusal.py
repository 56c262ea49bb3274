"""What a request can be refused for: a status, a code, and a reason that names no secret."""

from __future__ import annotations

RETRY_AFTER_S = 1


class Refused(Exception):
    """A request that is answered with a status and a reason."""

    status = 500
    code = "refused"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    @property
    def headers(self) -> dict[str, str]:
        """Return what the answer says beside its status."""
        return {"Retry-After": str(RETRY_AFTER_S)} if self.status == 503 else {}


class BadName(Refused):
    """A model id or version that none can have."""

    status, code = 422, "bad_name"


class UnknownModel(Refused):
    """The registry has no such model."""

    status, code = 404, "unknown_model"


class StoreDown(Refused):
    """The store or the database does not answer: ask again."""

    status, code = 503, "store_down"


class StoreBroken(Refused):
    """The store answers, but not with the model."""

    status, code = 502, "store_broken"


class DownloadsUnderWay(Refused):
    """Counts cannot be forgotten now."""

    status, code = 409, "downloads_under_way"


class ForeignPage(Refused):
    """A web page must not do this."""

    status, code = 403, "foreign_page"


class ClientGone(BaseException):
    """Nobody waits for the answer any more.

    Not an Exception, as asyncio's CancelledError: nothing on the way up may take it for a fault of
    the store and try again.
    """
