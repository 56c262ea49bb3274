"""What a request asks for, read from its body."""

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


def read(body: bytes) -> Asked:
    """Read a body, or raise Refused."""
    try:
        given = json.loads(body)
        messages = given["messages"]
        roles = [message["role"] for message in messages]
        tools = tuple(tool["function"] for tool in given.get("tools") or ())
        prompt = [_text(message) for message in messages]
        told = [list(zip(roles, prompt, strict=True)), list(tools)]
        return Asked(
            model=given["model"],
            stream=given.get("stream", False),
            # Roles and texts tell requests apart, and not how the JSON was written.
            digest=hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest(),
            prompt_tokens=sum(len(text.split()) for text in prompt),
            tools=tools,
            tools_answered=_tools_answered(roles),
        )
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        reason = "the body must be a JSON object with 'model', 'messages' and, if any, 'tools'"
        raise Refused(400, "invalid_request", reason) from None


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def _tools_answered(roles: list[str]) -> int:
    answered = 0
    for role in roles:
        answered = 0 if role == "user" else answered + (role == "tool")
    return answered
