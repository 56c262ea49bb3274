"""The application: its parts put together."""

from __future__ import annotations

import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from specimen import pages
from specimen.refusal import Refused
from specimen.server import prepared, server
from specimen.settings import public
from starlette.exceptions import HTTPException

from llm_proxy import chat
from llm_proxy.refusal import told
from llm_proxy.relay import Counts
from llm_proxy.settings import Settings
from llm_proxy.upstream import Upstream


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Make the client before the first request; the upstream need not be there yet."""
    await app.state.upstream.connect()
    yield
    await app.state.upstream.close()


def create_app(settings: Settings) -> FastAPI:
    """Return the application."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    counts = Counts()
    app.state.settings, app.state.counts = settings, counts
    app.state.upstream = Upstream(settings.upstream_address, settings.read_timeout_s)
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(HTTPException, refuse_path)
    chat.add_to(app)

    def in_force() -> dict[str, Any]:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return {**public(settings), "max_files": files}

    pages.add_to(app, counts, in_force)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal in the format of the API."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    return JSONResponse(told(error), error.status)


async def refuse_path(request: Request, error: Exception) -> JSONResponse:
    """Answer a path or method that there is not."""
    assert isinstance(error, HTTPException)
    reason = f"{request.method} {request.url.path}: {error.detail}"
    return await refuse(request, Refused(error.status_code, "unknown_path", reason))


if __name__ == "__main__":
    server(*prepared("llm_proxy", Settings, create_app)).run()
