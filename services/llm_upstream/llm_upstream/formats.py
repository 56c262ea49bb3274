"""Both wire formats: OpenAI's server-sent events and Ollama's lines of JSON."""

from __future__ import annotations

import json
from typing import Any

from llm_upstream.script import Call, Script

MODEL = "stand-in"
# The same request has the same answer, byte by byte.
CREATED, CREATED_AT = 1_700_000_000, "2023-11-14T22:13:20Z"


def dumped(value: Any) -> str:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Answer:
    """One answer; ``took_ns`` is how long the whole is planned to take.

    A format of an API has ``token``, ``call`` and ``end`` for the parts of a stream, ``whole`` for
    an answer in one piece, and ``error`` for a refusal.
    """

    def __init__(self, script: Script, took_ns: int) -> None:
        self.script = script
        self.took_ns = took_ns


class OpenAI(Answer):
    """``POST /v1/chat/completions``."""

    stream_type = "text/event-stream; charset=utf-8"
    streams = False

    def __init__(self, script: Script, took_ns: int) -> None:
        super().__init__(script, took_ns)
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

    @staticmethod
    def error(code: str, reason: str) -> str:
        """Return a refusal as the API words it."""
        told = {"message": reason, "type": "invalid_request_error", "param": None, "code": code}
        return dumped({"error": told})


class Ollama(Answer):
    """``POST /api/chat``."""

    stream_type = "application/x-ndjson"
    streams = True

    def _line(self, message: dict[str, Any], **more: Any) -> str:
        head = {"model": MODEL, "created_at": CREATED_AT}
        return dumped({**head, "message": {"role": "assistant", **message}, **more})

    def token(self, text: str, is_first: bool) -> bytes:  # noqa: ARG002
        """Return the line of one token."""
        return f"{self._line({'content': text}, done=False)}\n".encode()

    def call(self, call: Call) -> list[bytes]:
        """Return the call in one line."""
        return [f"{self._line(self._calling(call), done=False)}\n".encode()]

    def _calling(self, call: Call) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        return {"content": "", "tool_calls": [{"function": function}]}

    def _counts(self) -> dict[str, Any]:
        return {
            "done": True, "done_reason": "stop", "total_duration": self.took_ns, "load_duration": 0,
            "prompt_eval_count": self.script.asked.prompt_tokens, "prompt_eval_duration": 0,
            "eval_count": self.script.tokens, "eval_duration": self.took_ns,
        }  # fmt: skip

    def end(self) -> bytes:
        """Return the last line, with what was counted."""
        return f"{self._line({'content': ''}, **self._counts())}\n".encode()

    def whole(self) -> str:
        """Return the answer in one piece."""
        message: dict[str, Any] = {"content": "".join(self.script.words())}
        if self.script.call:
            message = self._calling(self.script.call)
        return self._line(message, **self._counts())

    @staticmethod
    def error(code: str, reason: str) -> str:  # noqa: ARG004
        """Return a refusal as the API words it."""
        return dumped({"error": reason})


Format = OpenAI | Ollama
