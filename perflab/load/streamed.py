"""One streamed answer: when each of its chunks came, and whether it is as expected.

A chunk is an event of the stream (:mod:`perflab.load.events`), not a chunk of HTTP's framing. Its
instant is that of the read that completed it: an event cut over several reads has the instant of
the last, and those that one read completed have the same one.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Literal

from perflab.load.events import LONGEST_EVENT_BYTES, JsonLines, ServerSentEvents, members_of
from perflab.load.outcome import CODES

Format = Literal["sse", "ndjson"]
FORMATS: dict[Format, type[ServerSentEvents] | type[JsonLines]] = {
    "sse": ServerSentEvents,
    "ndjson": JsonLines,
}
# They take 12 bytes each until the answer is recorded.
MOST_CHUNKS = 5_000_000
SHORT, UNENDED = CODES["stream_short"], CODES["stream_unended"]
TOO_MANY = f"a stream of more than {MOST_CHUNKS:,} chunks"
TOO_LONG = f"an event of more than {LONGEST_EVENT_BYTES >> 20} MiB"


@dataclass(frozen=True)
class Streaming:
    """What a request expects of a streamed answer: its format, its least chunks, its end."""

    format: Format
    min_chunks: int = 1
    end_marker: str = ""


def check_marker(kind: Format, end_marker: str) -> None:
    """Refuse an end marker that no stream of a format can have, by a ValueError."""
    if "\r" in end_marker or "\n" in end_marker:
        raise ValueError("end_marker is one line: no CR or LF")
    if kind == "ndjson" and end_marker:
        members_of(end_marker)


class Streamed:
    """The chunks of one answer so far.

    Attributes
    ----------
    at_ns, sizes : array
        Instant (CLOCK_MONOTONIC) and length of every event, the end marker included.
    refused : (str, str) or None
        The error class of a stream that cannot be read on, and why.
    """

    __slots__ = ("_asked", "_events", "at_ns", "refused", "sizes")

    def __init__(self, asked: Streaming) -> None:
        self._asked = asked
        self._events = FORMATS[asked.format](asked.end_marker)
        self.at_ns, self.sizes = array("q"), array("i")
        self.refused: tuple[str, str] | None = None

    def take(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self.refused is not None:
            return
        self.sizes.extend(self._events.feed(data))
        if len(self.sizes) > MOST_CHUNKS:
            self.refused = ("stream_too_long", TOO_MANY)
        if self._events.too_long:
            self.refused = ("event_too_long", TOO_LONG)

    def note(self, at_ns: int) -> None:
        """Note the instant of the read that brought the pieces since the last one."""
        at = self.at_ns
        for _ in range(len(self.sizes) - len(at)):
            at.append(at_ns)

    @property
    def is_ended(self) -> bool:
        """Whether the last event is the end marker that was asked for."""
        return self._events.is_ended

    @property
    def chunks(self) -> int:
        """Return how many chunks have come; the end marker is none."""
        return len(self.sizes) - self.is_ended

    @property
    def fault(self) -> int:
        """Return the error code of a stream that is over: 0 when it is as expected."""
        if self.chunks < self._asked.min_chunks:
            return SHORT
        return UNENDED if self._asked.end_marker and not self.is_ended else 0
