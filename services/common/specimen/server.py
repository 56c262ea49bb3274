"""Uvicorn as all services run it: one process, one event loop, nothing written per request."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, Literal

import uvicorn

from specimen.settings import read


def prepared(name: str, kind: type, make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return settings, out of variables such as ``CHAT_PORT``, and the application made of them.

    A setting that cannot be ends the process with a sentence.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        settings = read(kind, f"{name.upper()}_")
        return settings, make(settings)
    except (ValueError, OSError) as error:
        sys.exit(f"{name}: {error}")


def server(
    settings: Any,
    app: Any,
    loop: Literal["asyncio", "uvloop"] = "asyncio",
    lifespan: Literal["on", "off"] = "on",
    ws: Literal["none", "websockets", "websockets-sansio"] = "none",
    **more: Any,
) -> uvicorn.Server:
    """Return a server whose ``run`` serves until SIGTERM; ``more`` goes to Uvicorn."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop=loop,
        http="httptools",
        ws=ws,
        lifespan=lifespan,
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_graceful_shutdown=3,
        **more,
    )
    return uvicorn.Server(config)
