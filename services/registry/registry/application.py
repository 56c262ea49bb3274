"""The application: its parts put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from registry import pages
from registry.counts import Counts
from registry.downloads import endpoint
from registry.downloads.lines import open_line
from registry.downloads.presence import Watching
from registry.health import Health, Secret
from registry.refusal import Refused
from registry.settings import Settings, from_environment
from registry.store.asynchronous import AsyncStore
from registry.store.blocking import BlockingStore
from registry.timing import ServerTiming

ASYNCHRONOUS = ("async", "redirect")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Make the clients before the first request; the store need not be there yet."""
    state, settings = app.state, app.state.settings
    state.line = open_line(settings)
    state.async_store = AsyncStore(settings) if settings.handler in ASYNCHRONOUS else None
    state.store = None if state.async_store else BlockingStore(settings)
    if state.async_store:
        await state.async_store.connect()
    state.handler = endpoint.handler_of(state)
    yield
    if state.health:
        # Its own downloads wait for what is closed next.
        await state.health.close()
    state.line.close()
    if state.store:
        state.store.close()
    if state.async_store:
        await state.async_store.close()


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application; without settings, those of the environment."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = settings or from_environment()
    app.state.counts = Counts()
    app.add_middleware(Watching, counts=app.state.counts)
    app.add_middleware(ServerTiming)
    app.add_exception_handler(Refused, refuse)
    endpoint.add_to(app, app.state.settings.handler)
    pages.add_to(app)
    app.state.health = health_side(app.state.settings)
    if app.state.health:
        app.state.health.add_to(app)
    return app


def health_side(settings: Settings) -> Health | None:
    """Return the health side; a service without a secret has none that could open it."""
    if settings.secret_file == Path():
        return None
    return Health(settings.port, Secret.read(settings.secret_file))


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal with its name."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    told = {"error": {"code": error.code, "reason": error.reason}}
    return JSONResponse(told, error.status, error.headers)
