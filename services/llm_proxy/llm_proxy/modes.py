"""The three ways to pass a stream on.

``rebuild`` parses each chunk and makes a new one of what it knows; ``pass`` cuts the frame off, as
the SSE library puts its own around each event, and leaves the content as it is; ``raw`` looks at
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from specimen.refusal import Refused

from llm_proxy.rebuilding import rebuilt
from llm_proxy.refusal import broken, text_of

DONE = "[DONE]"
# How the API tells of an error in a stream, as its servers write it; nothing is parsed for it.
ERROR = b'{"error"'
# More than the last event's length.
TAIL = 32
LONGEST_LINE = 1_000_000


class Mode(ABC):
    """How one stream is passed on.

    ``is_whole`` once its last chunk was seen; ``has_error`` once an error of the upstream's own was
    passed on, after which nothing is missing. ``is_framed`` says that the response frames each
    chunk as an event.
    """

    is_framed: bool

    def __init__(self) -> None:
        self.is_whole = self.has_error = False

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[str | bytes]:
        """Yield the chunks to send for what arrived; raise Refused for what cannot be passed."""

    @abstractmethod
    def error(self, refused: Refused) -> str | bytes:
        """Return what tells the client of an error in the stream."""

    def end(self) -> None:
        """Take note of the end; raise Refused where the last chunk has not come."""
        if not self.is_whole and not self.has_error:
            raise broken("the upstream's stream ended before its last chunk")


class Events(Mode):
    """A stream that is cut into its events; at most one is held that is not complete yet.

    The content of each is passed on as it came, or made anew.
    """

    is_framed = True

    def __init__(self, rebuilds: bool) -> None:
        super().__init__()
        self._rebuilds = rebuilds
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the content of each event."""
        for line in self._complete(data):
            if line.startswith(b"data:"):
                yield self._content(line[5:].removeprefix(b" "))
            elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
                raise broken("the upstream sent a line that is not a server-sent event")

    def _complete(self, data: bytes) -> Iterator[bytes]:
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

    def _content(self, content: bytes) -> str:
        text = content.decode(errors="replace")
        if text == DONE:
            self.is_whole = True
        elif self._rebuilds:
            return rebuilt(text)
        self.has_error = self.has_error or content.startswith(ERROR)
        return text

    def error(self, refused: Refused) -> str:
        """Return the error as the content of an event."""
        return text_of(refused)


def _check(length: int) -> None:
    if length > LONGEST_LINE:
        reason = f"the upstream sent a chunk of over {LONGEST_LINE} bytes"
        raise Refused(502, "too_long", reason)


class Raw(Mode):
    """Bytes as they come. That events are missing at the end is seen by the last one alone."""

    is_framed = False

    def __init__(self) -> None:
        super().__init__()
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the same bytes."""
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        self.is_whole = DONE.encode() in self._tail
        yield data

    def error(self, refused: Refused) -> bytes:
        """Return the error as an event of its own, whatever was under way."""
        ahead = b"" if self._tail.endswith(b"\n") or not self._tail else b"\n\n"
        return ahead + b"data: %s\n\n" % text_of(refused).encode()


def mode_of(name: str) -> Mode:
    """Return the way of one stream."""
    return Raw() if name == "raw" else Events(rebuilds=name == "rebuild")
