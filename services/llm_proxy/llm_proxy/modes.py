"""The three ways to pass a stream on, for each of the wire formats.

``rebuild`` parses each chunk and makes a new one of what it knows; ``pass`` cuts the frame off, as
the SSE library puts its own around each event, and leaves the content as it is; ``raw`` looks at
nothing.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from llm_proxy.lines import Lines
from llm_proxy.refusal import Refused, broken

DONE = "[DONE]"
_LAST_LINE = re.compile(rb'"done"\s*:\s*true')
# How both APIs tell of an error in a stream, as their servers write it; nothing is parsed for it.
ERROR = '{"error"'
# More than the last event's length.
TAIL = 32


class Mode(ABC):
    """How one stream is passed on.

    ``is_whole`` once its last chunk was seen; ``has_error`` once an error of the upstream's own was
    passed on, after which nothing is missing.
    """

    def __init__(self) -> None:
        self.is_whole = self.has_error = False

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[str] | Iterator[bytes]:
        """Yield the chunks to send for what arrived; raise Refused for what cannot be passed."""

    def end(self) -> None:
        """Take note of the end; raise Refused where the last chunk has not come."""
        if not self.is_whole and not self.has_error:
            raise broken("the upstream's stream ended before its last chunk")

    @abstractmethod
    def error(self, refused: Refused) -> str | bytes:
        """Return what tells the client of an error in the stream."""


class Events(Mode):
    """Server-sent events, for a response that frames each of them again."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self._lines = Lines(longest)

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the content of each event."""
        for line in self._lines.feed(data):
            if self._is_data(line):
                yield self._content(line)

    @staticmethod
    def _is_data(line: bytes) -> bool:
        if line.startswith(b"data:"):
            return True
        if line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            raise broken("the upstream sent a line that is no server-sent event")
        return False

    def _content(self, line: bytes) -> str:
        content = line[5:].removeprefix(b" ").decode(errors="replace")
        if content == DONE:
            self.is_whole = True
            return content
        return self.passed(content)

    def passed(self, content: str) -> str:
        """Return what becomes of an event's content."""
        self.has_error = self.has_error or content.startswith(ERROR)
        return content

    def error(self, refused: Refused) -> str:
        """Return the content of an event."""
        return refused.text(is_openai=True)


class RebuiltEvents(Events):
    """Each event parsed and made anew."""

    def passed(self, content: str) -> str:
        """Return the chunk made anew; raise Refused for what is none."""
        return json.dumps(rebuilt_openai(_parsed(content)))


class JsonLines(Mode):
    """Lines of JSON, each passed on as it came."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self._lines = Lines(longest)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines, with their ends."""
        for line in self._lines.feed(data):
            if line:
                yield self._line(line) + b"\n"

    def _line(self, line: bytes) -> bytes:
        passed = self.passed(line)
        self.is_whole = self.is_whole or bool(_LAST_LINE.search(passed))
        return passed

    def passed(self, line: bytes) -> bytes:
        """Return what becomes of a line."""
        self.has_error = self.has_error or line.startswith(ERROR.encode())
        return line

    def error(self, refused: Refused) -> bytes:
        """Return a line."""
        return refused.text(is_openai=False).encode() + b"\n"


class RebuiltLines(JsonLines):
    """Each line parsed and made anew."""

    def passed(self, line: bytes) -> bytes:
        """Return the line made anew; raise Refused for what is none."""
        return json.dumps(rebuilt_ollama(_parsed(line))).encode()


class Raw(Mode):
    """Bytes as they come. That events are missing at the end is seen by OpenAI's last one alone."""

    def __init__(self, is_openai: bool) -> None:
        super().__init__()
        self._is_openai = is_openai
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the same bytes."""
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        self.is_whole = self._is_openai and DONE.encode() in self._tail
        yield data

    def end(self) -> None:
        """Take note of the end."""
        if self._is_openai:
            super().end()
        self.is_whole = True

    def error(self, refused: Refused) -> bytes:
        """Return the error as an event or line of its own, whatever was under way."""
        text = refused.text(self._is_openai).encode()
        ahead = b"" if self._tail.endswith(b"\n") or not self._tail else b"\n\n"
        return ahead + (b"data: %s\n\n" % text if self._is_openai else text + b"\n")


def mode_of(name: str, is_openai: bool, longest: int) -> Mode:
    """Return the way of one stream."""
    if name == "raw":
        return Raw(is_openai)
    if is_openai:
        return RebuiltEvents(longest) if name == "rebuild" else Events(longest)
    return RebuiltLines(longest) if name == "rebuild" else JsonLines(longest)


def rebuilt_whole(body: bytes, is_openai: bool) -> bytes:
    """Return an answer in one piece made anew; raise Refused for what is none."""
    made = rebuilt_openai(_parsed(body)) if is_openai else rebuilt_ollama(_parsed(body))
    return json.dumps(made).encode()


def _parsed(content: str | bytes) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(
            502, "upstream_malformed", "the upstream sent a chunk that is no JSON"
        ) from None
    if not isinstance(given, dict):
        raise Refused(502, "upstream_malformed", "the upstream sent a chunk that is no object")
    if "error" in given:
        raise Refused(502, "upstream_error", f"the upstream failed: {_reason(given['error'])}")
    return given


def _reason(error: Any) -> str:
    told = error.get("message") if isinstance(error, dict) else error
    return str(told)[:500]


def rebuilt_openai(given: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk or answer of OpenAI's API with the parts that are known."""
    kept = ("id", "object", "created", "model", "usage")
    choices = given.get("choices")
    if not isinstance(choices, list):
        raise Refused(502, "upstream_malformed", "the upstream sent a chunk without 'choices'")
    made = {name: given[name] for name in kept if name in given}
    return made | {"choices": [_choice(choice) for choice in choices]}


def _choice(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refused(502, "upstream_malformed", "the upstream sent a choice that is no object")
    made = {"index": given.get("index", 0), "finish_reason": given.get("finish_reason")}
    for part in ("delta", "message"):
        if isinstance(given.get(part), dict):
            made[part] = _spoken(given[part])
    return made


def _spoken(given: dict[str, Any]) -> dict[str, Any]:
    kept = ("role", "content", "thinking", "reasoning_content", "refusal", "tool_calls")
    return {name: given[name] for name in kept if name in given}


def rebuilt_ollama(given: dict[str, Any]) -> dict[str, Any]:
    """Return a line or answer of Ollama's API with the parts that are known."""
    if not isinstance(given.get("message"), dict):
        raise Refused(502, "upstream_malformed", "the upstream sent a line without 'message'")
    kept = (
        "model", "created_at", "done", "done_reason", "total_duration", "load_duration",
        "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
    )  # fmt: skip
    made = {name: given[name] for name in kept if name in given}
    return made | {"message": _spoken(given["message"])}
