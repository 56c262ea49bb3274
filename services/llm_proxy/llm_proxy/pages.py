"""What the service says of itself: health, settings in force, counts; and its reset."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request

from llm_proxy.refusal import Refused

LIBRARIES = ("aiohttp", "anyio", "fastapi", "sse-starlette", "starlette", "uvicorn", "uvloop")


def add_to(app: FastAPI) -> None:
    """Add the endpoints."""
    app.get("/health")(health)
    app.get("/settings")(settings_in_force)
    app.get("/counts")(counts)
    app.post("/reset")(reset)


async def health() -> dict[str, str]:
    """Answer once the service can be used."""
    return {"status": "ok"}


async def settings_in_force(request: Request) -> dict[str, Any]:
    """Return the settings in force; where a part can be asked, it is."""
    loop = type(asyncio.get_running_loop())
    return {
        **request.app.state.settings.public(),
        "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
        "max_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


async def counts(request: Request) -> dict[str, Any]:
    """Return what was counted since the start or the last reset."""
    shown: dict[str, Any] = request.app.state.counts.shown()
    return shown


async def reset(request: Request) -> dict[str, str]:
    """Count from zero, once no request is under way.

    Only with a JSON content type, which a web page of another origin cannot send unasked.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(403, "foreign_page", "send Content-Type: application/json")
    counted = request.app.state.counts
    if counted.open:
        raise Refused(409, "streams_under_way", f"{counted.open} requests are under way")
    counted.clear()
    return {"status": "reset"}
