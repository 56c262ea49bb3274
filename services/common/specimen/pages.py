"""What a FastAPI service says of itself: health, settings, counts, refusals; and its reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from specimen.counts import Counts
from specimen.refusal import Refused, check_reset


def add_to(
    app: FastAPI,
    counts: Counts,
    in_force: Callable[[], dict[str, Any]],
    forget: Callable[[], None] = lambda: None,
) -> None:
    """Add the endpoints; ``forget`` sets back what the service keeps besides counts."""

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/settings")
    async def settings() -> dict[str, Any]:
        return in_force()

    @app.get("/counts")
    async def counted() -> dict[str, Any]:
        return counts.shown()

    @app.post("/reset")
    async def reset(request: Request) -> dict[str, str]:
        check_reset(request.headers.get("content-type", ""), counts.open)
        forget()
        counts.clear()
        return {"status": "reset"}


def add_refusals(app: FastAPI, counts: Counts) -> None:
    """Answer what is refused with a code and a reason, and count it."""

    @app.exception_handler(Refused)
    async def refuse(_: Request, refused: Refused) -> JSONResponse:
        counts.refuse(refused.code)
        told = {"error": {"code": refused.code, "reason": refused.reason}}
        headers = {"Retry-After": "1"} if refused.status == 503 else {}
        return JSONResponse(told, refused.status, headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_fields(request: Request, error: RequestValidationError) -> JSONResponse:
        """Name the fields that are wrong, but not their values: one may be a password."""
        wrong = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        return await refuse(request, Refused(422, "bad_request", "; ".join(wrong)))
