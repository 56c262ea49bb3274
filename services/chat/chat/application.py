"""The application: its parts put together, and the endpoints in front of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from time import perf_counter_ns
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from chat import accounts, benchmark
from chat.channels import Channels
from chat.codecs import PROTOBUF_BACKEND
from chat.counts import Counts
from chat.hub import Hub
from chat.refusals import STATUS, Refused
from chat.settings import Settings
from chat.store import Commits, Store

# A hash of argon2 takes 64 MiB; so many are under way at a time.
LOGIN_THREADS = 4
NOT_LET_IN = 4401
LIBRARIES = ("fastapi", "msgspec", "orjson", "protobuf", "uvicorn", "uvloop", "websockets")
WEBSOCKETS = {"WebSocketProtocol": "websockets", "WebSocketsSansIOProtocol": "websockets-sansio"}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database and put the parts together before the first request."""
    state, settings = app.state, app.state.settings
    state.counts = Counts()
    state.hashing = accounts.hashing(settings.login_hash, settings.bcrypt_rounds)
    state.login_threads = ThreadPoolExecutor(LOGIN_THREADS, "logins")
    state.store = store = Store(settings.data)
    store.prepare_accounts(accounts.pool(settings.accounts, state.hashing))
    state.tokens = accounts.Tokens(store.tokens())
    state.channels = Channels(settings.channels, settings.subscriber_share, store.subscriptions())
    state.commits = Commits(Store(settings.data), settings.commit, state.counts)
    state.hub = Hub(settings, state.channels, state.commits, state.counts, store.next_sequence())
    yield
    state.login_threads.shutdown(cancel_futures=True)
    state.commits.close()
    store.close()


def build(settings: Settings) -> FastAPI:
    """Return the application; the server that runs it adds itself as ``state.server``."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = settings
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(RequestValidationError, refuse_request)
    app.get("/health")(health)
    app.get("/settings")(show_settings)
    app.get("/counts")(show_counts)
    app.post("/reset")(reset)
    app.post("/login")(log_in)
    app.websocket("/ws")(chat)
    app.get("/codec-bench")(codec_bench)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal with its code."""
    assert isinstance(error, Refused)
    request.app.state.counts.refuse(error.code)
    content = {"error": {"code": error.code, "reason": error.reason}}
    return JSONResponse(content, STATUS[error.code])


async def refuse_request(request: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, but not their values: one may be a password."""
    assert isinstance(error, RequestValidationError)
    wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return await refuse(request, Refused("bad_request", "; ".join(wrong)))


async def health() -> dict[str, str]:
    """Answer once the parts are there."""
    return {"state": "ready"}


async def show_settings(request: Request) -> dict[str, object]:
    """Return the settings; where a running part can be asked, it is, and not the settings."""
    settings, server = request.app.state.settings, request.app.state.server
    loop, websocket = type(asyncio.get_running_loop()), server.ws_protocol_class
    return {
        **settings.model_dump(exclude={"host", "port", "data"}),
        "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
        "cprofile": "on" if _is_profiled() else "off",
        "deflate": "on" if server.ws_per_message_deflate else "off",
        "websocket": WEBSOCKETS[websocket.__name__],
        "protobuf_backend": PROTOBUF_BACKEND,
        "cores": sorted(os.sched_getaffinity(0)),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _is_profiled() -> bool:
    """Ask the interpreter whether this thread runs under a profiler (from 3.12 on another way)."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.PROFILER_ID):
        return True
    return sys.getprofile() is not None


async def show_counts(request: Request) -> dict[str, object]:
    """Return what was counted since the start or the last reset."""
    state = request.app.state
    return {**state.counts.shown(), "active_users": len(state.hub.connections)}


async def reset(request: Request) -> dict[str, str]:
    """Forget messages, tokens, joins and leaves, and count from zero, as after a fresh start."""
    state = request.app.state
    if users := len(state.hub.connections):
        raise Refused("users_connected", f"{users} users are connected: disconnect them first")
    state.commits.flush()
    state.store.clear()
    state.tokens.clear()
    state.channels.clear()
    state.counts.clear()
    return {"state": "reset"}


class Login(BaseModel):
    """A user's name and password."""

    user: str = Field(max_length=100)
    password: str = Field(max_length=1000)


async def log_in(request: Request, response: Response, login: Login) -> dict[str, object]:
    """Verify a password and give out a token."""
    state, begin_ns = request.app.state, perf_counter_ns()
    known = state.store.password_hash(login.user)
    found_ns = perf_counter_ns()
    if known is None or not await verified(state, known, login.password):
        raise Refused("wrong_login", "no such user, or another password")
    verified_ns = perf_counter_ns()
    token, digest = state.tokens.issue(login.user)
    state.commits.token(digest, login.user)
    end_ns = perf_counter_ns()
    response.headers["Server-Timing"] = server_timing(
        store=(found_ns - begin_ns + end_ns - verified_ns) / 1e6,
        hash=(verified_ns - found_ns) / 1e6,
        app=(end_ns - begin_ns) / 1e6,
    )
    return {"token": token, "channels": state.channels.of(login.user)}


async def verified(state: Any, known: str, password: str) -> bool:
    """Verify a password where the setting ``login_in`` says: in the event loop or in a thread."""
    verify = state.hashing.verify
    if state.settings.login_in == "threads":
        loop = asyncio.get_running_loop()
        return bool(await loop.run_in_executor(state.login_threads, verify, known, password))
    return bool(verify(known, password))


def server_timing(**phases_ms: float) -> str:
    """Return phases of a request as the header Server-Timing has them."""
    return ", ".join(f"{name};dur={duration:.6g}" for name, duration in phases_ms.items())


async def chat(websocket: WebSocket) -> None:
    """Let a user with a valid token in; tell another, with a close code, why not."""
    state = websocket.app.state
    await websocket.accept()
    try:
        user = state.tokens.user_of(websocket.query_params.get("token", ""))
    except Refused as refused:
        state.counts.refuse(refused.code)
        await websocket.close(NOT_LET_IN, refused.code)
        return
    await state.hub.serve(websocket, user)


async def codec_bench(
    response: Response,
    codec: Literal["json", "orjson", "msgspec", "protobuf", "msgpack"],
    message: Literal["published", "chat", "batch"],
    op: Literal["serialize", "deserialize", "serialize_values", "deserialize_values"],
    loops: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
) -> dict[str, object]:
    """Time one step of a codec in this process; nothing else runs meanwhile."""
    ns_per_op, size = benchmark.measure(codec, message, op, loops)
    # The time of a thousand operations, in ms.
    response.headers["Server-Timing"] = server_timing(op=ns_per_op / 1e3)
    return {"ns_per_op": ns_per_op, "bytes": size, "loops": loops}
