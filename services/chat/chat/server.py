"""Run the service: one process, Uvicorn as the settings want it."""

from __future__ import annotations

import cProfile
import os

from fastapi import FastAPI
from specimen.server import prepared, server
from specimen.settings import read

from chat.application import build
from chat.settings import Settings

# A longer one ends its connection, unread.
LONGEST_FRAME_BYTES = 16_384


def made() -> tuple[Settings, FastAPI]:
    """Return settings and application."""
    settings = read(Settings, "CHAT_")
    return settings, build(settings)


def main() -> None:
    """Bind to a core where wanted, and serve until SIGTERM."""
    settings, app = prepared("chat", made)
    if settings.bind == "on":
        # Before any thread is there, so that all of them inherit it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    running = server(
        settings,
        app,
        settings.loop,
        ws=settings.websocket,
        ws_max_size=LONGEST_FRAME_BYTES,
        ws_per_message_deflate=settings.deflate == "on",
    )
    app.state.server = running.config
    if settings.cprofile == "on":
        cProfile.Profile().runcall(running.run)
    else:
        running.run()


if __name__ == "__main__":
    main()
