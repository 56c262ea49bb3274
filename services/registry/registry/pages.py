"""What the service says of itself: health, settings in force, counts; and its reset."""

from __future__ import annotations

import asyncio
import os
import platform
from importlib.metadata import version
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request

from registry.refusal import DownloadsUnderWay, ForeignPage

LIBRARIES = (
    "aiobotocore", "aiohttp", "anyio", "boto3", "botocore", "fastapi", "starlette", "urllib3",
    "uvicorn", "uvloop",
)  # fmt: skip


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
    """Return the settings in force; where a part can be asked, it is."""
    state = request.app.state
    loop = type(asyncio.get_running_loop())
    return {
        **state.settings.public(),
        **_clients(state),
        "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
        "threads_of_line": state.line.threads,
        "threads_of_framework": int(to_thread.current_default_thread_limiter().total_tokens),
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _clients(state: Any) -> dict[str, Any]:
    """Return what the client of the store itself goes by."""
    config = (state.store or state.async_store).objects.meta.config
    return {
        "pool_connections": config.max_pool_connections,
        "retry_attempts": config.retries["total_max_attempts"],
        "retry_mode": config.retries["mode"],
        "read_timeout_s": config.read_timeout,
    }


async def counts(request: Request) -> dict[str, Any]:
    """Return what was counted since the start or the last reset."""
    state = request.app.state
    framework = to_thread.current_default_thread_limiter().statistics()
    store = state.store or state.async_store
    return {
        **state.counts.shown(),
        "waiting_for_thread": state.line.waiting,
        "most_waiting_for_thread": state.line.most_waiting,
        "working_threads": state.line.working,
        "threads_of_line": state.line.threads,
        "framework_waiting": framework.tasks_waiting,
        "framework_working": framework.borrowed_tokens,
        "store_connections": store.tally.shown(),
        "database_connections": store.database_tally.shown(),
    }


async def reset(request: Request) -> dict[str, str]:
    """Count from zero, once no download is under way.

    Only with a JSON content type, which a web page of another origin cannot send unasked.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ForeignPage("send Content-Type: application/json")
    state = request.app.state
    if state.counts.in_flight:
        raise DownloadsUnderWay(f"{state.counts.in_flight} downloads are under way")
    state.counts.clear()
    state.line.clear()
    store = state.store or state.async_store
    store.tally.clear()
    store.database_tally.clear()
    return {"status": "reset"}
