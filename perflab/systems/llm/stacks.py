"""The proxy's stack, the requests of its users, and what ``perflab stack up`` starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from perflab.load.workload import Request
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import Value
from perflab.systems.llm.rungs import Kind
from perflab.trials.experiment import ReadyStack

PROXY = "proxy"
# The model name of the stand-in; requests must name it.
MODEL = "stand-in"
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


def stack(settings: Mapping[str, Value], upstream: Mapping[str, Value]) -> StackPlan:
    """Return the stand-in with the settings ``upstream``, and the proxy before it."""
    return StackPlan(
        nodes=(
            Node(name="model", service="llm_upstream", placement="database", settings=upstream),
            Node(name=PROXY, service="llm_proxy", needs={"upstream": "model"}, settings=settings),
        )
    )


def request(kind: Kind, node: str, least_chunks: int, tool_calls: int) -> Request:
    """Return the request of users.

    Streams must have ``least_chunks`` and their last event; a batch must be an answer with a text.
    With tools the ``tool_calls + 1`` steps of one conversation are sent in turn, each with one more
    result; the last step gets the answer.
    """
    fields: dict[str, Any] = {
        "node": node,
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": {"Content-Type": "application/json"},
    }
    if kind == "batch":
        body = _body([QUESTION], stream=False)
        return Request(**fields, body=body, expect_body='"content"')
    if kind == "tools":
        steps = range(tool_calls + 1)
        fields["body"] = tuple(_body(_messages(done), tools=[TOOL]) for done in steps)
    else:
        fields["body"] = _body([QUESTION])
    return Request(**fields, stream="sse", min_chunks=least_chunks, end_marker="[DONE]")


def _body(messages: list[dict[str, Any]], stream: bool = True, **more: Any) -> str:
    payload = {"model": MODEL, "temperature": 0, "stream": stream, "messages": messages, **more}
    return json.dumps(payload)


def _messages(done: int) -> list[dict[str, Any]]:
    """Return a conversation in which ``done`` calls of the tool have their result."""
    messages: list[dict[str, Any]] = [{**QUESTION}]
    for number in range(done):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"place": "delta"}'},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": RESULT})
    return messages


STACKS = (
    ReadyStack(
        "llm",
        lambda: stack({"mode": "pass"}, {}),
        f"clients of OpenAI's API take the proxy's address with /v1; the model is {MODEL}",
    ),
)
