"""The wire format of OpenAI's chat completions: server-sent events, or one JSON."""

from __future__ import annotations

import json
from typing import Any

from llm_upstream.script import Call, Script

MODEL = "stand-in"
# The same request has the same answer, byte by byte.
CREATED = 1_700_000_000


def dumped(value: Any) -> str:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Answer:
    """One answer of ``POST /v1/chat/completions``."""

    stream_type = "text/event-stream; charset=utf-8"

    def __init__(self, script: Script) -> None:
        self.script = script
        # All chunks but the first and the last differ in their text alone.
        ahead, _, behind = dumped(self._chunk({"content": "\0"})).partition('"\\u0000"')
        self._ahead, self._behind = f"data: {ahead}", f"{behind}\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.script.id}", "object": kind, "created": CREATED, "model": MODEL,
        }  # fmt: skip

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._head("chat.completion.chunk") | {"choices": choices}

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return f"data: {dumped(self._chunk(delta, finish))}\n\n".encode()

    def token(self, text: str, is_first: bool) -> bytes:
        """Return the event of one token; the first one says who speaks."""
        if is_first:
            return self._event({"role": "assistant", "content": text})
        return f"{self._ahead}{dumped(text)}{self._behind}".encode()

    def call(self, call: Call) -> list[bytes]:
        """Return the name first, then the arguments, as the API does."""
        function = {"name": call.name, "arguments": ""}
        named = {"index": 0, "id": call.id, "type": "function", "function": function}
        told = {"index": 0, "function": {"arguments": dumped(call.arguments)}}
        begun = {"role": "assistant", "content": None, "tool_calls": [named]}
        return [self._event(begun), self._event({"tool_calls": [told]})]

    def end(self) -> bytes:
        """Return why it ends, and the last event."""
        return self._event({}, self.script.finish) + b"data: [DONE]\n\n"

    def whole(self) -> str:
        """Return the answer in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.script.words())}
        if call := self.script.call:
            function = {"name": call.name, "arguments": dumped(call.arguments)}
            calls = [{"id": call.id, "type": "function", "function": function}]
            message |= {"content": None, "tool_calls": calls}
        choice = {
            "index": 0, "message": message, "logprobs": None, "finish_reason": self.script.finish,
        }  # fmt: skip
        asked, told = self.script.asked.prompt_tokens, self.script.tokens
        usage = {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
        return dumped(self._head("chat.completion") | {"choices": [choice], "usage": usage})


def refusal(code: str, reason: str) -> str:
    """Return a refusal as the API words it."""
    told = {"message": reason, "type": "invalid_request_error", "param": None, "code": code}
    return dumped({"error": told})
