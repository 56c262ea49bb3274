"""What a request asks for, read from the body of either API."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from specimen.refusal import Refused

Tool = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request for an answer.

    ``digest`` is made of all that the answer depends on; ``tools_answered`` are the results of
    tools since the last message of the user.
    """

    model: str
    stream: bool
    digest: bytes
    prompt_tokens: int
    tools: tuple[Tool, ...]
    tools_answered: int


def read(body: bytes, streams: bool) -> Asked:
    """Read a body; ``streams`` is what the API does without a word of the request's own.

    Raises
    ------
    Refused
        It cannot be read.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise _bad_request("the body is no JSON") from None
    if not isinstance(given, dict):
        raise _bad_request("the body must be a JSON object")
    model, stream = given.get("model"), given.get("stream", streams)
    if not isinstance(model, str) or not isinstance(stream, bool):
        raise _bad_request("'model' must be a name, 'stream' true or false")
    messages, tools = _messages(given.get("messages")), _tools(given.get("tools") or [])
    return Asked(
        model=model,
        stream=stream,
        digest=_digest(messages, tools),
        prompt_tokens=sum(len(_text(message).split()) for message in messages),
        tools=tools,
        tools_answered=_tools_answered(messages),
    )


def _bad_request(reason: str) -> Refused:
    return Refused(400, "invalid_request", reason)


def _messages(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given:
        raise _bad_request("'messages' must be a list of at least one message")
    for message in given:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise _bad_request("each of 'messages' must be an object with a 'role'")
    return given


def _tools(given: Any) -> tuple[Tool, ...]:
    try:
        functions = tuple(tool["function"] for tool in given)
        named = all(isinstance(function["name"], str) for function in functions)
    except (TypeError, KeyError):
        named = False
    if not named:
        raise _bad_request("each of 'tools' must have a 'function' with a 'name'")
    return functions


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def _tools_answered(messages: list[dict[str, Any]]) -> int:
    answered = 0
    for message in messages:
        answered = 0 if message["role"] == "user" else answered + (message["role"] == "tool")
    return answered


def _digest(messages: list[dict[str, Any]], tools: tuple[Tool, ...]) -> bytes:
    """Return what tells requests apart: roles and texts, not how the JSON was written."""
    told = [[[message["role"], _text(message)] for message in messages], list(tools)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
