"""The endpoints: logins, what the service tells of itself, and the door to the chat."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Depends, FastAPI, Query, Request, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from chat import benchmark
from chat.breaking import wait_briefly
from chat.channels import Channels
from chat.hub import Hub
from chat.origin import refuse_forms, refuse_other_pages
from chat.refusal import Refused, UsersConnected, WrongLogin
from chat.running import in_force
from chat.store import TOKEN
from chat.timing import KEY, Phases

NOT_LET_IN = 4401
# Of the slowest step these take half a second, in which nothing is answered.
MOST_LOOPS = 10_000


class Login(BaseModel):
    """A user's name and password."""

    model_config = ConfigDict(extra="forbid")

    user: str = Field(max_length=100)
    password: str = Field(max_length=1000)


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
    refuse_other_pages(request.headers, state.settings.host)
    phases: Phases = request.scope[KEY]
    with phases.phase("store"):
        known = state.store.password_hash(login.user)
    with phases.phase("hash"):
        # A name without an account takes as long, so that its time does not tell.
        is_right = await verified(state, known or state.no_account, login.password)
    if known is None or not is_right:
        state.suspicion.rouse()
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
    """Verify a password where the setting ``login_in`` says: in the event loop or in a thread.

    Only while logins fail it is done where it harms nobody; to compare takes no time anyway.
    """
    verify = state.hashing.verify
    if state.suspicion.is_roused and state.settings.login_hash != "none":
        return bool(await state.suspicion.verify(verify, known, password))
    if state.settings.login_in == "threads":
        right = await anyio.to_thread.run_sync(verify, known, password, limiter=state.login_threads)
        return bool(right)
    return bool(verify(known, password))


async def codec_bench(
    request: Request,
    codec: Literal["json", "orjson", "msgspec", "protobuf", "msgpack"],
    message: Literal["published", "chat", "batch"],
    op: Literal["serialize", "deserialize", "serialize_values", "deserialize_values"],
    loops: Annotated[int, Query(ge=1, le=MOST_LOOPS)] = 10_000,
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
    refuse_other_pages(request.headers, state.settings.host)
    refuse_forms(request.headers)
    if state.hub.connections:
        raise UsersConnected(f"{len(state.hub.connections)} users are connected")
    state.commits.flush()
    state.store.clear()
    state.tokens.clear()
    state.channels.clear()
    state.counts.clear()
    # What comes next counts its own wrong logins: those of before must change nothing in it.
    state.suspicion.calm()
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


def add_to(app: FastAPI) -> None:
    """Give an application the endpoints of a chat."""
    _add_control_to(app)
    app.get("/channels")(show_channels)
    app.get("/history")(show_history)
    app.post("/login")(log_in)
    app.websocket("/ws")(chat)


def add_benchmark_to(app: FastAPI) -> None:
    """Give an application the codec benchmark, and no users whom it would hold up."""
    _add_control_to(app)
    app.get("/codec-bench")(codec_bench)


def _add_control_to(app: FastAPI) -> None:
    app.get("/health")(health)
    app.get("/settings")(show_settings)
    app.get("/counts")(show_counts)
    app.post("/reset")(reset)
