"""Refusals: each has a code that a program can act on, and a reason for the reader."""

from __future__ import annotations

from fastapi.responses import JSONResponse

LONGEST_REASON = 400


class Refused(Exception):
    """Something that was asked of the health side is refused; ``status`` is its HTTP status."""

    code = "refused"
    status = 400

    def __init__(self, reason: str, **more: object) -> None:
        super().__init__(reason)
        self.reason = reason[:LONGEST_REASON]
        self.more = more

    def answer(self) -> JSONResponse:
        """Return what the client gets; a reason that no encoding takes is escaped."""
        reason = self.reason.encode(errors="backslashreplace").decode()
        error = {"code": self.code, "reason": reason, **self.more}
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else None
        return JSONResponse({"error": error}, self.status, headers)


class MissingToken(Refused):
    """No token was given."""

    code = "missing_token"
    status = 401


class WrongToken(Refused):
    """The token is not the service's."""

    code = "wrong_token"
    status = 401


class BadRequest(Refused):
    """The body is not what the workload takes."""

    code = "bad_request"
    status = 422


class TooLarge(Refused):
    """The body is longer than any workload's."""

    code = "too_large"
    status = 413


class WorkloadRunning(Refused):
    """One workload at a time; ``run_id`` names the one under way."""

    code = "workload_running"
    status = 409


class UnknownRun(Refused):
    """No run of that name is kept."""

    code = "unknown_run"
    status = 404


class Stopping(Refused):
    """The service is about to end."""

    code = "stopping"
    status = 503
