"""What users ask of the proxy: a stream, an answer in one piece, or one with tools."""

from __future__ import annotations

import json
from typing import Any

from perflab.load.workload import Request
from perflab.systems.llm.rungs import Kind, Wire
from perflab.systems.llm.service import MODEL

PATHS: dict[Wire, str] = {"sse": "/v1/chat/completions", "ndjson": "/api/chat"}
END_MARKERS: dict[Wire, str] = {"sse": "[DONE]", "ndjson": '"done":true'}
QUESTION = {"role": "user", "content": "How is the weather where the river meets the sea?"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "the weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}
RESULT = "12 degrees, rain"


def request(kind: Kind, wire: Wire, node: str, least_chunks: int, tool_calls: int) -> Request:
    """Return what is sent.

    Streams must have ``least_chunks`` and their last event; a batch must be an answer with a text.
    Of tools the steps of one conversation are sent in turn: the question, then the same with one
    result after the other, so that of every ``tool_calls + 1`` requests the last gets the answer.
    """
    asked: dict[str, Any] = {
        "node": node,
        "method": "POST",
        "path": PATHS[wire],
        "headers": {"Content-Type": "application/json"},
    }
    if kind == "batch":
        body = _body([QUESTION], stream=False)
        return Request(**asked, body=body, expect_body='"content"')
    if kind == "tools":
        steps = range(tool_calls + 1)
        asked |= {"body": tuple(_body(_messages(done), tools=[TOOL]) for done in steps)}
    else:
        asked |= {"body": _body([QUESTION])}
    return Request(**asked, stream=wire, min_chunks=least_chunks, end_marker=END_MARKERS[wire])


def _body(messages: list[dict[str, Any]], stream: bool = True, **more: Any) -> str:
    words = {"model": MODEL, "temperature": 0, "stream": stream, "messages": messages, **more}
    return json.dumps(words)


def _messages(done: int) -> list[dict[str, Any]]:
    """Return a conversation in which so many calls of the tool have their result."""
    told: list[dict[str, Any]] = [{**QUESTION}]
    for number in range(done):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"place": "delta"}'},
        }
        told.append({"role": "assistant", "content": None, "tool_calls": [call]})
        told.append({"role": "tool", "tool_call_id": f"call_{number}", "content": RESULT})
    return told
