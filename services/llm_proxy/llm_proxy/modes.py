"""The three ways to pass a stream on, for each of the wire formats.

``rebuild`` parses each chunk and makes a new one of what it knows; ``pass`` cuts the frame off, as
the SSE library puts its own around each event, and leaves the content as it is; ``raw`` looks at
nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

from specimen.refusal import Refused

from llm_proxy.rebuilding import rebuilt
from llm_proxy.refusal import broken, text_of

DONE = "[DONE]"
_LAST_LINE = re.compile(rb'"done"\s*:\s*true')
# How both APIs tell of an error in a stream, as their servers write it; nothing is parsed for it.
ERROR = '{"error"'
# More than the last event's length.
TAIL = 32
LONGEST_LINE = 1_000_000


class Mode(ABC):
    """How one stream is passed on.

    ``is_whole`` once its last chunk was seen; ``has_error`` once an error of the upstream's own was
    passed on, after which nothing is missing.
    """

    is_openai = True

    def __init__(self) -> None:
        self.is_whole = self.has_error = False

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[str] | Iterator[bytes]:
        """Yield the chunks to send for what arrived; raise Refused for what cannot be passed."""

    def end(self) -> None:
        """Take note of the end; raise Refused where the last chunk has not come."""
        if not self.is_whole and not self.has_error:
            raise broken("the upstream's stream ended before its last chunk")

    def error(self, refused: Refused) -> str | bytes:
        """Return what tells the client of an error in the stream."""
        return text_of(refused, self.is_openai)


class Lines(Mode):
    """A stream that is cut into its lines; at most one is held that is not complete yet."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._held = 0

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are complete, without their ends; refuse one that is too long."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._parts, complete[0]])
            self._parts, self._held = [], 0
        self._parts.append(rest)
        self._held += len(rest)
        for line in complete:
            _check(len(line))
            yield line.removesuffix(b"\r")
        _check(self._held)


def _check(length: int) -> None:
    if length > LONGEST_LINE:
        reason = f"the upstream sent a chunk of over {LONGEST_LINE} bytes"
        raise Refused(502, "too_long", reason)


class Events(Lines):
    """Server-sent events, for a response that frames each of them again."""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the content of each event."""
        for line in self.lines(data):
            if line.startswith(b"data:"):
                yield self._content(line)
            elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
                raise broken("the upstream sent a line that is no server-sent event")

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


class RebuiltEvents(Events):
    """Each event parsed and made anew."""

    def passed(self, content: str) -> str:
        """Return the chunk made anew; raise Refused for what is none."""
        return rebuilt(content, is_openai=True)


class JsonLines(Lines):
    """Lines of JSON, each passed on as it came."""

    is_openai = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines, with their ends."""
        for line in self.lines(data):
            if line:
                passed = self.passed(line)
                self.is_whole = self.is_whole or bool(_LAST_LINE.search(passed))
                yield passed + b"\n"

    def passed(self, line: bytes) -> bytes:
        """Return what becomes of a line."""
        self.has_error = self.has_error or line.startswith(ERROR.encode())
        return line

    def error(self, refused: Refused) -> bytes:
        """Return a line."""
        return text_of(refused, is_openai=False).encode() + b"\n"


class RebuiltLines(JsonLines):
    """Each line parsed and made anew."""

    def passed(self, line: bytes) -> bytes:
        """Return the line made anew; raise Refused for what is none."""
        return rebuilt(line, is_openai=False).encode()


class Raw(Mode):
    """Bytes as they come. That events are missing at the end is seen by OpenAI's last one alone."""

    def __init__(self, is_openai: bool) -> None:
        super().__init__()
        self.is_openai = is_openai
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the same bytes."""
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        self.is_whole = self.is_openai and DONE.encode() in self._tail
        yield data

    def end(self) -> None:
        """Take note of the end."""
        if self.is_openai:
            super().end()
        self.is_whole = True

    def error(self, refused: Refused) -> bytes:
        """Return the error as an event or line of its own, whatever was under way."""
        text = text_of(refused, self.is_openai).encode()
        ahead = b"" if self._tail.endswith(b"\n") or not self._tail else b"\n\n"
        return ahead + (b"data: %s\n\n" % text if self.is_openai else text + b"\n")


def mode_of(name: str, is_openai: bool) -> Mode:
    """Return the way of one stream."""
    if name == "raw":
        return Raw(is_openai)
    if is_openai:
        return RebuiltEvents() if name == "rebuild" else Events()
    return RebuiltLines() if name == "rebuild" else JsonLines()
