"""Requests for an answer: in one piece, as a stream, with tools or without."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from fastapi import FastAPI, Request
from fastapi.responses import Response
from specimen.presence import ClientGone, present
from specimen.refusal import Refused
from specimen.timing import Phases
from starlette.requests import ClientDisconnect

from llm_proxy.modes import mode_of
from llm_proxy.rebuilding import rebuilt
from llm_proxy.refusal import broken
from llm_proxy.relay import Relay
from llm_proxy.upstream import MOST_BYTES, whole_body

PATH = "/v1/chat/completions"
JSON = "application/json"


@dataclass(frozen=True)
class Asked:
    """A request as it is passed on, and what the proxy has to know of it."""

    body: bytes
    stream: bool


def add_to(app: FastAPI) -> None:
    """Add the endpoint."""
    app.post(PATH)(answer)


async def answer(request: Request) -> Response:
    """Pass a request on, and its answer back; errors are counted where they are told."""
    state, phases = request.app.state, Phases()
    state.counts.add(requests=1, open=1)
    outcome = "failed"
    try:
        asked = await _read(request)
        given = await present(request.receive, _ask(state, asked, phases))
        headers = {"Server-Timing": phases.header()}
        if isinstance(given, Relay):
            # From here on the response counts how it went.
            outcome = ""
            return given.response(headers)
        status, body = given
        outcome = "completed" if status < 400 else "failed"
        return Response(body, status, headers, JSON)
    except (ClientGone, ClientDisconnect):
        outcome = "aborted"
        # Nobody reads it.
        return Response(status_code=499)
    finally:
        if outcome:
            state.counts.add(open=-1, **{outcome: 1})


async def _read(request: Request) -> Asked:
    """Read a request; without a word of its own it does not stream."""
    parts, length = [], 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > MOST_BYTES:
            raise Refused(
                413, "too_large", f"the request is longer than {MOST_BYTES} bytes; send less"
            )
    body = b"".join(parts)
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is not JSON") from None
    kinds = {"model": str, "messages": list, "stream": bool}
    asked = {"stream": False, **given} if isinstance(given, dict) else {}
    if not all(isinstance(asked.get(name), kind) for name, kind in kinds.items()):
        reason = "the body must be an object with 'model' (a name) and 'messages' (a list)"
        raise Refused(422, "invalid_request", f"{reason}; 'stream', if given, is true or false")
    return Asked(body, asked["stream"])


async def _ask(state: Any, asked: Asked, phases: Phases) -> Relay | tuple[int, str | bytes]:
    """Ask the upstream; return a stream once its first bytes came, else status and body."""
    response = await state.upstream.ask(PATH, phases, asked.body)
    if response.status == 200 and asked.stream:
        relay = Relay(response, mode_of(state.settings.mode), state.counts)
        try:
            await relay.first()
        except BaseException:
            relay.close()
            raise
        phases.reached("first_chunk")
        return relay
    try:
        return response.status, await _whole(state, response, phases)
    finally:
        # Read to its end, the connection went back before; else it is of no further use.
        response.close()


async def _whole(state: Any, response: aiohttp.ClientResponse, phases: Phases) -> str | bytes:
    body = await whole_body(response)
    state.counts.add(bytes_read=len(body))
    phases.reached("body")
    if response.status < 400:
        return rebuilt(body) if state.settings.mode == "rebuild" else body
    state.counts.refuse(f"upstream_{response.status}")
    # A refusal is passed on as the upstream words it, which is already in the API's format.
    with suppress(ValueError, RecursionError):
        if "error" in json.loads(body):
            return body
    raise broken(f"the upstream answered with status {response.status} and gave no reason")
