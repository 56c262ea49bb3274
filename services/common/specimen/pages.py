"""What a FastAPI service says of itself: health, settings in force, counts; and its reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request

from specimen.counts import Counts
from specimen.refusal import check_reset


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
