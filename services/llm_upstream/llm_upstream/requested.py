"""What a request asks for, read from the body of either API."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from llm_upstream.refusal import bad_request

Tool = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request for an answer.

    ``digest`` is made of all that the answer depends on; ``most_tokens`` is None where the request
    sets no limit, ``seed`` where it has none of its own. ``tools_answered`` are the results of
    tools since the last message of the user.
    """

    model: str
    stream: bool
    digest: bytes
    prompt_tokens: int
    temperature: float
    seed: int | None
    most_tokens: int | None
    tools: tuple[Tool, ...]
    tools_answered: int
    wants_usage: bool


def read_openai(body: bytes) -> Asked:
    """Read the body of ``POST /v1/chat/completions``; raise Refused for what cannot be read."""
    given = _object(body)
    most = given.get("max_completion_tokens", given.get("max_tokens"))
    options = given.get("stream_options") or {}
    if not isinstance(options, dict):
        raise bad_request("'stream_options' must be an object")
    return _asked(given, given, most, False, bool(options.get("include_usage")))


def read_ollama(body: bytes) -> Asked:
    """Read the body of ``POST /api/chat``; raise Refused for what cannot be read."""
    given = _object(body)
    options = given.get("options") or {}
    if not isinstance(options, dict):
        raise bad_request("'options' must be an object")
    return _asked(given, options, options.get("num_predict"), True, True)


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise bad_request("the body is no JSON") from None
    if not isinstance(given, dict):
        raise bad_request("the body must be a JSON object")
    return given


def _asked(
    given: dict[str, Any], options: dict[str, Any], most: Any, streams: bool, wants_usage: bool
) -> Asked:
    model, stream = given.get("model"), given.get("stream", streams)
    if not isinstance(model, str) or not model:
        raise bad_request("'model' must be the name of a model")
    if not isinstance(stream, bool):
        raise bad_request("'stream' must be true or false")
    messages, tools = _messages(given.get("messages")), _tools(given.get("tools"))
    return Asked(
        model=model,
        stream=stream,
        digest=_digest(model, messages, tools),
        prompt_tokens=sum(len(_text(message).split()) for message in messages),
        temperature=_temperature(options.get("temperature")),
        seed=_whole(options.get("seed"), "seed"),
        # Ollama says -1 for an answer without limit.
        most_tokens=None if most in (None, -1) else _whole(most, "the most tokens"),
        tools=tools,
        tools_answered=_tools_answered(messages),
        wants_usage=wants_usage,
    )


def _messages(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given:
        raise bad_request("'messages' must be a list of at least one message")
    for message in given:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request("each of 'messages' must be an object with a 'role'")
    return given


def _tools(given: Any) -> tuple[Tool, ...]:
    if given is None:
        return ()
    functions = [tool.get("function") for tool in given if isinstance(tool, dict)] if isinstance(
        given, list
    ) else [None]  # fmt: skip
    for function in functions:
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise bad_request("each of 'tools' must have a 'function' with a 'name'")
    return tuple(functions)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return " ".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _tools_answered(messages: list[dict[str, Any]]) -> int:
    answered = 0
    for message in messages:
        answered = 0 if message["role"] == "user" else answered + (message["role"] == "tool")
    return answered


def _digest(model: str, messages: list[dict[str, Any]], tools: tuple[Tool, ...]) -> bytes:
    """Return what tells requests apart: roles and texts, not how the JSON was written."""
    told = [model, [[message["role"], _text(message)] for message in messages], list(tools)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


def _temperature(given: Any) -> float:
    if given is None:
        return 0.0
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 2:
        raise bad_request("'temperature' must be a number from 0 to 2")
    return float(given)


def _whole(given: Any, name: str) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise bad_request(f"{name} must be a whole number, 0 or more")
    return given
