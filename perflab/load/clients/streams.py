"""One streamed answer: when each of its chunks came, and whether it is as expected.

A chunk is an event of the stream, not a chunk of HTTP's framing. Its instant is that of the read
that completed it: an event cut over several reads has the instant of the last read, and all events
that one read completed have the same instant. Only the last line is kept.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from perflab.load.clients.outcome import CODES
from perflab.load.clients.stream_formats import FORMATS, LONGEST_EVENT_BYTES, Format, members_of

# A chunk takes 12 bytes until its answer is recorded.
MOST_CHUNKS = 5_000_000
SHORT, UNENDED = CODES["stream_short"], CODES["stream_unended"]
TOO_MANY = f"a stream of more than {MOST_CHUNKS:,} chunks"
TOO_LONG = f"an event of more than {LONGEST_EVENT_BYTES >> 20} MiB"


@dataclass(frozen=True)
class Streaming:
    """The format, least number of chunks and end marker that a request expects of a stream."""

    format: Format
    min_chunks: int = 1
    end_marker: str = ""


def check_marker(kind: Format, end_marker: str) -> None:
    """Raise ValueError for an end marker that no stream of a format can have."""
    if "\r" in end_marker or "\n" in end_marker:
        raise ValueError("end_marker is one line: no CR or LF")
    if kind == "ndjson" and end_marker:
        members_of(end_marker)


class Streamed:
    """The chunks of one answer so far.

    ``at_ns`` and ``sizes`` are instant (CLOCK_MONOTONIC) and length of every event, the end marker
    included; ``refused`` is the error class of a stream that cannot be read on, and why.
    """

    __slots__ = ("_events", "_expected", "at_ns", "refused", "sizes")

    def __init__(self, expected: Streaming) -> None:
        self._expected = expected
        self._events = FORMATS[expected.format](expected.end_marker)
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
        """Note the instant of a read for the events that it completed."""
        self.at_ns.extend([at_ns] * (len(self.sizes) - len(self.at_ns)))

    @property
    def is_ended(self) -> bool:
        """Whether the last event is the end marker."""
        return self._events.is_ended

    @property
    def chunks(self) -> int:
        """Return the number of chunks so far, without the end marker."""
        return len(self.sizes) - self.is_ended

    @property
    def fault(self) -> int:
        """Return the error code of a finished stream; 0 when it is as expected."""
        if self.chunks < self._expected.min_chunks:
            return SHORT
        return UNENDED if self._expected.end_marker and not self.is_ended else 0
