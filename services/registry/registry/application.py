"""The application: its parts put together."""

from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from specimen import pages
from specimen.server import prepared, server
from specimen.settings import public
from specimen.timing import ServerTiming

from registry import downloads, health
from registry.counts import Counting, Counts
from registry.lines import open_line
from registry.settings import Settings
from registry.stores import BlockingStore, connected


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Make the clients before the first request; the store need not be there yet."""
    state, settings = app.state, app.state.settings
    async with AsyncExitStack() as opened:
        if settings.handler in ("async", "redirect"):
            state.store = await opened.enter_async_context(connected(settings, state.counts))
        else:
            state.store = BlockingStore(settings, state.counts)
        line = open_line(settings, state.counts)
        state.handler = downloads.handler_of(settings, state.store, line)
        yield


def create_app(settings: Settings) -> FastAPI:
    """Return the application."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    counts = Counts()
    app.state.settings, app.state.counts = settings, counts
    app.add_middleware(Counting, counts=counts)
    app.add_middleware(ServerTiming)
    downloads.add_to(app, settings.handler)

    def in_force() -> dict[str, Any]:
        """Return the settings in force; the store's client itself is asked what it goes by."""
        config = app.state.store.objects.meta.config
        return {
            **public(settings),
            "pool_connections": config.max_pool_connections,
            # The first attempt is no retry.
            "retries": config.retries["total_max_attempts"] - 1,
            "retry_mode": config.retries["mode"],
        }

    pages.add_refusals(app, counts)
    pages.add_to(app, counts, in_force)
    health.add_to(app, settings.port)
    return app


if __name__ == "__main__":
    # Both ends of each download that it makes of itself, and what each has open behind.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server(*prepared("registry", Settings, create_app)).run()
    # Threads that wait for a slow store would hold up the end of the process.
    os._exit(0)
