"""The application: its parts put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from chat import accounts, endpoints, page
from chat.channels import Channels
from chat.commits import open_commits
from chat.counts import Counts
from chat.hub import SEQUENCES_PER_START, Hub
from chat.patience import Patience
from chat.refusal import BadRequest, Refused
from chat.settings import Settings
from chat.store import Store
from chat.suspicion import Suspicion
from chat.timing import ServerTiming
from chat.tokens import REMEMBERED_S, Tokens

# A hash of argon2 takes 64 MiB; so many are under way at a time.
LOGIN_THREADS = 4


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database and put the parts together before the first request."""
    state, settings = app.state, app.state.settings
    state.counts = Counts()
    state.hashing = accounts.hashing(settings.login_hash, settings.bcrypt_rounds)
    state.login_threads = anyio.CapacityLimiter(LOGIN_THREADS)
    state.suspicion = Suspicion()
    state.store, behind = Store(settings.data), Store(settings.data)
    pool = accounts.pool(settings.accounts, state.hashing)
    state.no_account = pool[0][1]
    state.store.prepare_accounts(pool)
    state.tokens = Tokens(settings.token_ttl_s, state.store.tokens(REMEMBERED_S))
    state.channels = Channels(
        settings.channels, settings.subscriber_share, state.store.subscriptions()
    )
    state.commits = open_commits(settings, state.store, behind, state.counts)
    state.hub = Hub(
        settings,
        state.channels,
        state.commits,
        state.counts,
        state.store.first_sequence(SEQUENCES_PER_START),
    )
    patience = Patience(state.connections, settings.patience_s, state.counts)
    watching = asyncio.create_task(patience.watch())
    yield
    watching.cancel()
    state.suspicion.close()
    state.commits.close()
    behind.close()
    state.store.close()


def build(settings: Settings) -> FastAPI:
    """Return the application.

    The server that runs it adds itself as ``state.server``, and its ``state.connections``.
    """
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = settings
    app.add_middleware(ServerTiming)
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(RequestValidationError, refuse_request)
    if settings.benchmark == "on":
        endpoints.add_benchmark_to(app)
    else:
        endpoints.add_to(app)
        page.add_to(app)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal with its name."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    return JSONResponse({"error": {"code": error.code, "reason": error.reason}}, error.status)


async def refuse_request(request: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, but not their values: one may be a password."""
    assert isinstance(error, RequestValidationError)
    wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return await refuse(request, BadRequest("; ".join(wrong)))
