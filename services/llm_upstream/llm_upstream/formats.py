"""Both wire formats: OpenAI's server-sent events and Ollama's lines of JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from llm_upstream.script import Call, Script

# Of all answers: the same request has the same answer, byte by byte.
CREATED, CREATED_AT = 1_700_000_000, "2023-11-14T22:13:20Z"


def dumped(value: Any) -> str:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Format(ABC):
    """One answer in the format of one API; ``took_ns`` is how long the whole is planned to take."""

    content_type = "application/json"
    stream_type = ""

    def __init__(self, script: Script, took_ns: int) -> None:
        self.script = script
        self.took_ns = took_ns

    @abstractmethod
    def token(self, text: str, is_first: bool) -> bytes:
        """Return the chunk of one token."""

    @abstractmethod
    def call(self, call: Call) -> list[bytes]:
        """Return the chunks of a call of a tool."""

    @abstractmethod
    def end(self, sent: int) -> bytes:
        """Return what ends the stream."""

    @abstractmethod
    def whole(self) -> bytes:
        """Return the answer in one piece."""

    @abstractmethod
    def framed(self, text: str) -> bytes:
        """Return a text as the stream carries it."""

    @staticmethod
    @abstractmethod
    def error(status: int, code: str, reason: str) -> str:
        """Return a refusal."""


class OpenAI(Format):
    """``POST /v1/chat/completions``."""

    stream_type = "text/event-stream; charset=utf-8"

    def __init__(self, script: Script, took_ns: int) -> None:
        super().__init__(script, took_ns)
        # All chunks but the last differ in their text alone.
        ahead, _, self._behind = dumped(self._chunk({"content": "\0"})).partition('"\\u0000"')
        self._ahead = f"data: {ahead}"
        self._behind += "\n\n"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._head("chat.completion.chunk") | {"choices": choices}

    def _head(self, kind: str) -> dict[str, Any]:
        model = self.script.asked.model
        return {
            "id": f"chatcmpl-{self.script.id}", "object": kind, "created": CREATED, "model": model,
        }  # fmt: skip

    def framed(self, text: str) -> bytes:
        """Return one event."""
        return f"data: {text}\n\n".encode()

    def token(self, text: str, is_first: bool) -> bytes:
        """Return the event of one token; the first one says who speaks."""
        if is_first:
            return self.framed(dumped(self._chunk({"role": "assistant", "content": text})))
        return f"{self._ahead}{dumped(text)}{self._behind}".encode()

    def call(self, call: Call) -> list[bytes]:
        """Return the name first, then the arguments, as the API does."""
        function = {"name": call.name, "arguments": ""}
        named = {"index": 0, "id": call.id, "type": "function", "function": function}
        told = {"index": 0, "function": {"arguments": dumped(call.arguments)}}
        begun = {"role": "assistant", "content": None, "tool_calls": [named]}
        deltas: list[dict[str, Any]] = [begun, {"tool_calls": [told]}]
        return [self.framed(dumped(self._chunk(delta))) for delta in deltas]

    def end(self, sent: int) -> bytes:
        """Return why it ends, the usage where that was asked for, and the last event."""
        events = [dumped(self._chunk({}, self.script.finish))]
        if self.script.asked.wants_usage:
            usage = {"choices": [], "usage": self._usage(sent)}
            events.append(dumped(self._head("chat.completion.chunk") | usage))
        return b"".join(map(self.framed, [*events, "[DONE]"]))

    def _usage(self, sent: int) -> dict[str, int]:
        asked = self.script.asked.prompt_tokens
        return {"prompt_tokens": asked, "completion_tokens": sent, "total_tokens": asked + sent}

    def whole(self) -> bytes:
        """Return the answer in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.script.words())}
        if call := self.script.call:
            function = {"name": call.name, "arguments": dumped(call.arguments)}
            calls = [{"id": call.id, "type": "function", "function": function}]
            message |= {"content": None, "tool_calls": calls}
        choice = {
            "index": 0, "message": message, "logprobs": None, "finish_reason": self.script.finish,
        }  # fmt: skip
        usage = {"choices": [choice], "usage": self._usage(self.script.tokens)}
        return dumped(self._head("chat.completion") | usage).encode()

    @staticmethod
    def error(status: int, code: str, reason: str) -> str:
        """Return a refusal as the API words it."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        told = {"message": reason, "type": kind, "param": None, "code": code}
        return dumped({"error": told})


class Ollama(Format):
    """``POST /api/chat``."""

    stream_type = "application/x-ndjson"

    def _line(self, message: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        head = {"model": self.script.asked.model, "created_at": CREATED_AT}
        return {**head, "message": {"role": "assistant", **message}, **more}

    def framed(self, text: str) -> bytes:
        """Return one line."""
        return f"{text}\n".encode()

    def token(self, text: str, is_first: bool) -> bytes:  # noqa: ARG002
        """Return the line of one token."""
        return self.framed(dumped(self._line({"content": text}, {"done": False})))

    def call(self, call: Call) -> list[bytes]:
        """Return the call in one line."""
        return [self.framed(dumped(self._line(self._calling(call), {"done": False})))]

    def _calling(self, call: Call) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        return {"content": "", "tool_calls": [{"function": function}]}

    def _counts(self, sent: int) -> dict[str, Any]:
        # Ollama has one word for an answer and for a call.
        reason = "length" if self.script.finish == "length" else "stop"
        return {
            "done": True, "done_reason": reason, "total_duration": self.took_ns, "load_duration": 0,
            "prompt_eval_count": self.script.asked.prompt_tokens, "prompt_eval_duration": 0,
            "eval_count": sent, "eval_duration": self.took_ns,
        }  # fmt: skip

    def end(self, sent: int) -> bytes:
        """Return the last line, with what was counted."""
        return self.framed(dumped(self._line({"content": ""}, self._counts(sent))))

    def whole(self) -> bytes:
        """Return the answer in one piece."""
        message: dict[str, Any] = {"content": "".join(self.script.words())}
        if self.script.call:
            message = self._calling(self.script.call)
        return dumped(self._line(message, self._counts(self.script.tokens))).encode()

    @staticmethod
    def error(status: int, code: str, reason: str) -> str:  # noqa: ARG004
        """Return a refusal as the API words it."""
        return dumped({"error": reason})
