"""What a FastAPI service says of itself: health, settings in force, counts; and its reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request

from specimen.counts import Counts
from specimen.refusal import check_reset

Shown = Callable[[], dict[str, Any]]


def add_to(
    app: FastAPI, counts: Counts, in_force: Shown, shown: Shown, clear: Callable[[], None]
) -> None:
    """Add the endpoints; none of them waits for a thread.

    Parameters
    ----------
    in_force, shown : callable
        Return the settings in force, and what was counted.
    clear : callable
        Counts from zero; asked only while no request is under way.
    """

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/settings")
    async def settings() -> dict[str, Any]:
        return in_force()

    @app.get("/counts")
    async def counted() -> dict[str, Any]:
        return shown()

    @app.post("/reset")
    async def reset(request: Request) -> dict[str, str]:
        check_reset(request.headers.get("content-type", ""), counts.open)
        clear()
        return {"status": "reset"}
