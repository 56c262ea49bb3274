"""The application: its parts put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from registry import downloads, health, pages
from registry.counts import Counting, Counts
from registry.lines import open_line
from registry.refusals import Refused
from registry.settings import Settings
from registry.stores import AsyncStore, BlockingStore
from registry.timing import ServerTiming


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Make the clients before the first request; the store need not be there yet."""
    state, settings = app.state, app.state.settings
    state.line = open_line(settings)
    if settings.handler in ("async", "redirect"):
        state.store = AsyncStore(settings)
        await state.store.connect()
    else:
        state.store = BlockingStore(settings)
    state.handler = downloads.handler_of(settings, state.store, state.line)
    yield
    if isinstance(state.store, AsyncStore):
        await state.store.close()


def create_app(settings: Settings) -> FastAPI:
    """Return the application."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = settings
    app.state.counts = Counts()
    app.add_middleware(Counting, counts=app.state.counts)
    app.add_middleware(ServerTiming)
    app.add_exception_handler(Refused, refuse)
    downloads.add_to(app, settings.handler)
    pages.add_to(app)
    health.add_to(app, settings.port)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal with its name."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    told = {"error": {"code": error.code, "reason": str(error)}}
    return JSONResponse(told, error.status, error.headers)
