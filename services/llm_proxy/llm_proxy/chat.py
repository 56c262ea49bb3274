"""Requests for an answer: in one piece, as a stream, with tools or without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from llm_proxy.modes import mode_of, rebuilt_whole
from llm_proxy.refusal import ClientGone, Refused, broken, invalid
from llm_proxy.relay import Relay, streamed
from llm_proxy.timing import Phases
from llm_proxy.upstream import refuse_status, whole_body

OPENAI, OLLAMA = "/v1/chat/completions", "/api/chat"
JSON = "application/json"
T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """A request as it is passed on, and what the proxy has to know of it."""

    body: bytes
    stream: bool
    has_tools: bool


def add_to(app: FastAPI) -> None:
    """Add the endpoints."""
    app.post(OPENAI)(answer)
    app.post(OLLAMA)(answer)
    app.get("/v1/models")(listed)
    app.get("/api/tags")(listed)


async def answer(request: Request) -> Response:
    """Pass a request on, and its answer back; errors are counted where they are told."""
    state, phases = request.app.state, Phases()
    is_openai = request.url.path == OPENAI
    state.counts.begin()
    outcome = "failed"
    try:
        asked = await _read(request, state.settings.max_body_bytes, not is_openai)
        state.counts.with_tools += asked.has_tools
        response = await present(request, _ask(request, asked, phases, is_openai))
        if isinstance(response, Relay):
            # From here on the response counts how it went.
            outcome = ""
            headers = phases.header() | _named(response.headers)
            return streamed(response, state.counts, state.settings.mode, is_openai, headers)
        outcome = "completed" if response.status_code < 400 else "failed"
        return response
    except (ClientGone, ClientDisconnect):
        outcome = "aborted"
        # Nobody reads it.
        return Response(status_code=499)
    finally:
        if outcome:
            state.counts.end(outcome)


async def _ask(request: Request, asked: Asked, phases: Phases, is_openai: bool) -> Response | Relay:
    """Ask the upstream; return what is to be answered, a stream once its first bytes came."""
    state = request.app.state
    path = OPENAI if is_openai else OLLAMA
    response = await state.upstream.ask("POST", path, asked.body, request.headers, phases)
    phases.note("headers")
    if response.status == 200 and asked.stream:
        return await _begun(state, response, phases, is_openai)
    try:
        return await _whole(state, response, phases, is_openai)
    finally:
        # Read to its end, the connection went back before; else it is of no further use.
        if not response.content.at_eof():
            state.counts.upstream_stopped += 1
        response.close()


async def _begun(
    state: Any, response: aiohttp.ClientResponse, phases: Phases, is_openai: bool
) -> Relay:
    settings = state.settings
    mode = mode_of(settings.mode, is_openai, settings.max_event_bytes)
    relay = Relay(response, mode, state.counts, settings.stream_limit_s)
    try:
        await relay.first()
    except BaseException:
        relay.close()
        raise
    phases.note("first_chunk")
    return relay


async def _whole(
    state: Any, response: aiohttp.ClientResponse, phases: Phases, is_openai: bool
) -> Response:
    refuse_status(response)
    body = await whole_body(response, state.settings.max_body_bytes)
    state.counts.bytes_read += len(body)
    phases.note("body")
    if response.status >= 400:
        body = _refusal_of_upstream(response.status, body)
        state.counts.refuse(f"upstream_{response.status}")
    elif state.settings.mode == "rebuild":
        body = rebuilt_whole(body, is_openai)
    state.counts.bytes_given += len(body)
    headers = phases.header() | _named(response.headers)
    return Response(body, response.status, headers, JSON)


def _named(headers: Any) -> dict[str, str]:
    """Return the number that the stand-in gave its answer, by which its instants are found."""
    return {"X-Stream": headers["X-Stream"]} if "X-Stream" in headers else {}


def _refusal_of_upstream(status: int, body: bytes) -> bytes:
    """Return a refusal as the upstream words it, which is already in the API's format."""
    with suppress(ValueError, RecursionError):
        if "error" in json.loads(body):
            return body
    raise broken(f"the upstream answers with status {status} and no reason")


async def present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work gives; end it when the client goes.

    Raises
    ------
    ClientGone
        Nobody waits any more.
    """
    working = asyncio.ensure_future(work)
    going = asyncio.ensure_future(_client_gone(request))
    try:
        await asyncio.wait((working, going), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone = not working.done()
        for task in (going, working):
            task.cancel()
        # What was cancelled must have let go of its connection.
        await asyncio.wait((going, working))
    if gone:
        raise ClientGone
    return working.result()


async def _client_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request, most: int, streams: bool) -> Asked:
    """Read a request; without a word of its own OpenAI's API does not stream, Ollama's does."""
    parts, length = [], 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > most:
            raise Refused(413, "too_large", f"a request has {most} bytes at most")
    body = b"".join(parts)
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is no JSON") from None
    if not isinstance(given, dict):
        raise invalid("the body must be a JSON object")
    if not isinstance(given.get("model"), str) or not given["model"]:
        raise invalid("'model' must be the name of a model")
    if not isinstance(given.get("messages"), list) or not given["messages"]:
        raise invalid("'messages' must be a list of at least one message")
    stream = given.get("stream", streams)
    if not isinstance(stream, bool):
        raise invalid("'stream' must be true or false")
    return Asked(body, stream, bool(given.get("tools")))


async def listed(request: Request) -> Response:
    """Pass the upstream's list of models on."""
    state = request.app.state
    response = await state.upstream.ask("GET", request.url.path)
    try:
        refuse_status(response)
        body = await whole_body(response, state.settings.max_body_bytes)
    finally:
        response.close()
    return Response(body, response.status, media_type=JSON)
