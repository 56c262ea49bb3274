"""Run the service: one process, Uvicorn as the settings want it."""

from __future__ import annotations

import cProfile
import os
import sys

import uvicorn

from chat.application import build
from chat.settings import Settings, from_environment

# A longer one ends its connection, unread.
LONGEST_FRAME_BYTES = 16_384


def configured(settings: Settings) -> uvicorn.Config:
    """Return Uvicorn's configuration, with the application in it."""
    app = build(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop=settings.loop,
        http="httptools",
        ws=settings.websocket,
        ws_max_size=LONGEST_FRAME_BYTES,
        ws_per_message_deflate=settings.deflate == "on",
        lifespan="on",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
    )
    config.load()
    app.state.server = config
    return config


def main() -> None:
    """Read the settings, bind to a core where wanted, and serve until SIGTERM."""
    try:
        settings = from_environment()
    except ValueError as error:
        sys.exit(f"chat: {error}")
    if settings.bind == "on":
        # Before any thread is there, so that all of them inherit it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    server = uvicorn.Server(configured(settings))
    if settings.cprofile == "on":
        cProfile.Profile().runcall(server.run)
    else:
        server.run()


if __name__ == "__main__":
    main()
