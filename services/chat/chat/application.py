"""The application: its parts put together, and its endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from fastapi import Depends, FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from chat import accounts, benchmark
from chat.breaking import wait_briefly
from chat.channels import Channels
from chat.commits import open_commits
from chat.counts import Counts
from chat.hub import Hub
from chat.refusal import BadRequest, Refused, UsersConnected, WrongLogin
from chat.running import in_force
from chat.settings import Settings
from chat.store import TOKEN, Store
from chat.timing import KEY, Phases, ServerTiming
from chat.tokens import Tokens

# A hash of argon2 takes 64 MiB; so many are under way at a time.
LOGIN_THREADS = 4
NOT_LET_IN = 4401


class Login(BaseModel):
    """A user's name and password."""

    model_config = ConfigDict(extra="forbid")

    user: str = Field(max_length=100)
    password: str = Field(max_length=1000)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database and put the parts together before the first request."""
    state, settings = app.state, app.state.settings
    state.counts = Counts()
    state.hashing = accounts.HASHINGS[settings.login_hash]()
    state.login_threads = anyio.CapacityLimiter(LOGIN_THREADS)
    state.store, behind = Store(settings.data), Store(settings.data)
    pool = accounts.pool(settings.accounts, state.hashing)
    state.no_account = pool[0][1]
    state.store.prepare_accounts(pool)
    state.tokens = Tokens(settings.token_ttl_s, state.store.tokens())
    state.channels = Channels(
        settings.channels, settings.subscriber_share, state.store.subscriptions()
    )
    state.commits = open_commits(settings, state.store, behind, state.counts)
    state.hub = Hub(
        settings, state.channels, state.commits, state.counts, state.store.last_sequence()
    )
    yield
    state.commits.close()
    behind.close()
    state.store.close()


def build(settings: Settings) -> FastAPI:
    """Return the application; the server that runs it adds itself as ``state.server``."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = settings
    app.add_middleware(ServerTiming)
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(RequestValidationError, refuse_request)
    app.get("/health")(health)
    app.get("/settings")(show_settings)
    app.get("/counts")(show_counts)
    app.get("/channels")(show_channels)
    app.get("/history")(show_history)
    app.get("/codec-bench")(codec_bench)
    app.post("/login")(log_in)
    app.post("/reset")(reset)
    app.websocket("/ws")(chat)
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


def bearer(headers: Any) -> str | None:
    """Return the token of an Authorization header, if there is one."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def user_of(request: Request) -> str:
    """Return who asks; refuse a request without a valid token."""
    user: str = request.app.state.tokens.user_of(bearer(request.headers))
    return user


User = Annotated[str, Depends(user_of)]


async def health() -> dict[str, str]:
    """Answer once the parts are there."""
    return {"state": "ready"}


async def show_settings(request: Request) -> dict[str, object]:
    """Return the settings in force."""
    return in_force(request.app)


async def show_counts(request: Request) -> dict[str, object]:
    """Return what was counted since the start or the last reset."""
    state = request.app.state
    hub: Hub = state.hub
    return {
        **state.counts.shown(),
        "active_users": len(hub.connections),
        "queued": hub.waiting,
        "tasks": len(asyncio.all_tasks()),
    }


async def show_channels(request: Request, user: User) -> dict[str, object]:
    """Return all channels and those that the user is subscribed to."""
    channels: Channels = request.app.state.channels
    return {
        "channels": channels.names,
        "subscribed": [channel.name for channel in channels.of(user)],
    }


async def show_history(
    request: Request,
    user: User,  # noqa: ARG001 - anyone who is logged in may read
    channel: str,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> dict[str, object]:
    """Return a channel's latest committed messages, oldest first."""
    state = request.app.state
    entries = state.store.history(state.channels.named(channel).name, limit)
    return {
        "channel": channel,
        "messages": [
            {"sender": entry.sender, "sequence": entry.sequence, "text": entry.text}
            for entry in entries
        ],
    }


async def log_in(request: Request, login: Login) -> dict[str, object]:
    """Verify a password and give out a token."""
    state = request.app.state
    phases: Phases = request.scope[KEY]
    with phases.phase("store"):
        known = state.store.password_hash(login.user)
    with phases.phase("hash"):
        # A name without an account takes as long, so that its time does not tell.
        is_right = await verified(state, known or state.no_account, login.password)
    if known is None or not is_right:
        raise WrongLogin("no such user, or another password")
    with phases.phase("store"):
        token, row = state.tokens.issue(login.user)
        state.commits.change((TOKEN, row))
    state.counts.logins += 1
    return {
        "token": token,
        "expires_in_s": state.settings.token_ttl_s,
        "channels": [channel.name for channel in state.channels.of(login.user)],
    }


async def verified(state: Any, known: str, password: str) -> bool:
    """Verify a password where the setting ``login_in`` says: in the event loop or in a thread."""
    verify = state.hashing.verify
    if state.settings.login_in == "threads":
        right = await anyio.to_thread.run_sync(verify, known, password, limiter=state.login_threads)
        return bool(right)
    return bool(verify(known, password))


async def codec_bench(
    request: Request,
    codec: Literal["json", "orjson", "msgspec", "protobuf", "msgpack"],
    message: Literal["published", "chat", "batch"],
    op: Literal["serialize", "deserialize", "serialize_values", "deserialize_values"],
    loops: Annotated[int, Query(ge=1, le=10_000_000)] = 10_000,
) -> dict[str, object]:
    """Time one step of a codec in this process; nothing else runs meanwhile."""
    measured = benchmark.measure(codec, message, op, loops)
    phases: Phases = request.scope[KEY]
    # The time of a thousand operations, in ms.
    phases.durations_ms["op"] = measured.ns_per_op / 1e3
    return {"ns_per_op": measured.ns_per_op, "bytes": measured.bytes, "loops": loops}


async def reset(request: Request) -> dict[str, str]:
    """Forget messages, tokens, joins and leaves, and count from zero, as after a fresh start."""
    state = request.app.state
    if state.hub.connections:
        raise UsersConnected(f"{len(state.hub.connections)} users are connected")
    state.commits.flush()
    state.store.clear()
    state.tokens.clear()
    state.channels.clear()
    state.counts.clear()
    return {"state": "reset"}


async def chat(websocket: WebSocket) -> None:
    """Let a user with a valid token in; tell another, with a close code, why not."""
    state = websocket.app.state
    given = bearer(websocket.headers) or websocket.query_params.get("token")
    await websocket.accept()
    wait_briefly(websocket)
    try:
        user = state.tokens.user_of(given)
    except Refused as refused:
        state.counts.refuse(refused.code)
        await websocket.close(NOT_LET_IN, refused.code)
        return
    await state.hub.serve(websocket, user)
