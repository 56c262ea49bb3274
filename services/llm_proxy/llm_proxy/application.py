"""The application: its parts put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from llm_proxy import chat, pages
from llm_proxy.counts import Counts
from llm_proxy.refusal import Refused
from llm_proxy.settings import Settings, endpoint, from_environment
from llm_proxy.upstream import Upstream


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Make the client before the first request; the upstream need not be there yet."""
    await app.state.upstream.connect()
    yield
    await app.state.upstream.close()


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application; without settings, those of the environment."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    state = app.state
    state.settings = settings or from_environment()
    state.counts = Counts()
    state.upstream = Upstream(state.settings, endpoint(state.settings), state.counts)
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(HTTPException, refuse_path)
    chat.add_to(app)
    pages.add_to(app)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal in the format of the API that was asked."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    told = error.told(is_openai=not request.url.path.startswith("/api/"))
    return JSONResponse(told, error.status)


async def refuse_path(request: Request, error: Exception) -> JSONResponse:
    """Answer a path or method that there is not."""
    assert isinstance(error, HTTPException)
    reason = f"{request.method} {request.url.path}: {error.detail}"
    return await refuse(request, Refused(error.status_code, "unknown_path", reason))
