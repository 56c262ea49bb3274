"""What the service says of itself: health, settings in force, counts; and its reset."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request

from registry.refusals import UnderWay


def add_to(app: FastAPI) -> None:
    """Add the endpoints; none of them waits for a thread."""
    app.get("/health")(health)
    app.get("/settings")(settings_in_force)
    app.get("/counts")(counts)
    app.post("/reset")(reset)


async def health() -> dict[str, str]:
    """Answer once the service can be used."""
    return {"status": "ok"}


async def settings_in_force(request: Request) -> dict[str, Any]:
    """Return the settings in force; the store's client itself is asked what it goes by."""
    state = request.app.state
    config = state.store.objects.meta.config
    return {
        **state.settings.public(),
        "pool_connections": config.max_pool_connections,
        "retry_attempts": config.retries["total_max_attempts"],
        "retry_mode": config.retries["mode"],
    }


async def counts(request: Request) -> dict[str, Any]:
    """Return what was counted since the start or the last reset."""
    state = request.app.state
    return {
        **state.counts.shown(),
        "waiting_for_thread": state.line.waiting,
        "most_waiting_for_thread": state.line.most_waiting,
        "working_threads": state.line.working,
        "store_connections": state.store.tally.shown(),
    }


async def reset(request: Request) -> dict[str, str]:
    """Count from zero, once no download is under way."""
    state = request.app.state
    if state.counts.in_flight:
        raise UnderWay(f"{state.counts.in_flight} downloads are under way: ask again after them")
    state.counts.clear()
    state.line.clear()
    state.store.tally.clear()
    return {"status": "reset"}
