"""The application: its parts, the endpoints in front of them, and one process that serves it."""

from __future__ import annotations

import asyncio
import cProfile
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response, WebSocket
from pydantic import BaseModel, Field
from specimen import pages
from specimen.refusal import Refused
from specimen.server import prepared, server
from specimen.settings import public
from specimen.timing import Phases

from chat import accounts, benchmark
from chat.channels import Channels
from chat.codecs import PROTOBUF_BACKEND
from chat.hub import Hub
from chat.settings import Settings
from chat.store import Commits, Counts, Store

NOT_LET_IN = 4401
# A longer one ends its connection, unread.
LONGEST_FRAME_BYTES = 16_384
LIBRARIES = ("fastapi", "msgspec", "orjson", "protobuf", "uvicorn", "uvloop", "websockets")
WEBSOCKETS = {"WebSocketProtocol": "websockets", "WebSocketsSansIOProtocol": "websockets-sansio"}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database and put the parts together before the first request."""
    state, settings = app.state, app.state.settings
    state.store = store = Store(settings.data)
    store.prepare_accounts(
        accounts.pool(settings.accounts, settings.login_hash, settings.bcrypt_rounds)
    )
    state.tokens = accounts.Tokens(store.tokens())
    state.channels = Channels(settings.channels, settings.subscriber_share, store.subscriptions())
    state.commits = Commits(Store(settings.data), settings.commit, state.counts)
    state.hub = Hub(settings, state.channels, state.commits, state.counts, store.next_sequence())
    yield
    state.commits.close()
    store.close()


def create_app(settings: Settings) -> FastAPI:
    """Return the application; the server that runs it adds itself as ``state.server``."""
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings, app.state.counts = settings, Counts()
    pages.add_refusals(app, app.state.counts)
    pages.add_to(app, app.state.counts, lambda: in_force(app.state), lambda: forget(app.state))
    app.post("/login")(log_in)
    app.websocket("/ws")(chat)
    app.get("/codec-bench")(codec_bench)
    return app


def in_force(state: Any) -> dict[str, object]:
    """Return the settings; where a running part can be asked, it is, and not the settings."""
    loop, config = type(asyncio.get_running_loop()), state.server
    return {
        **public(state.settings),
        "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
        "cprofile": "on" if _is_profiled() else "off",
        "deflate": "on" if config.ws_per_message_deflate else "off",
        "websocket": WEBSOCKETS[config.ws_protocol_class.__name__],
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


def forget(state: Any) -> None:
    """Forget messages, tokens, joins and leaves, as after a fresh start."""
    state.commits.flush()
    state.store.clear()
    state.tokens.clear()
    state.channels.clear()


class Login(BaseModel):
    """A user's name and password."""

    user: str = Field(max_length=100)
    password: str = Field(max_length=1000)


async def log_in(request: Request, response: Response, login: Login) -> dict[str, object]:
    """Verify a password and give out a token."""
    state, phases = request.app.state, Phases()
    with phases.phase("store"):
        known = state.store.password_hash(login.user)
    with phases.phase("hash"):
        is_known = known and accounts.is_password(login.password, known, state.settings.login_hash)
    if not is_known:
        raise Refused(401, "wrong_login", "no such user, or a wrong password")
    with phases.phase("store"):
        token, digest = state.tokens.issue(login.user)
        state.commits.token(digest, login.user)
    response.headers["Server-Timing"] = phases.header()
    return {"token": token, "channels": state.channels.of(login.user)}


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
    message: Literal["published", "chat"],
    op: Literal["serialize", "deserialize", "serialize_values", "deserialize_values"],
    loops: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
) -> dict[str, object]:
    """Time one step of a codec in this process; nothing else runs meanwhile."""
    ns_per_op, size = benchmark.measure(codec, message, op, loops)
    # The time of a thousand operations, in ms.
    response.headers["Server-Timing"] = f"op;dur={ns_per_op / 1e3:.6g}"
    return {"ns_per_op": ns_per_op, "bytes": size, "loops": loops}


def main() -> None:
    """Bind to a core where wanted, and serve until SIGTERM."""
    settings, app = prepared("chat", Settings, create_app)
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
