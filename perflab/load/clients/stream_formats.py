"""The formats of streamed answers.

Server-sent events: WHATWG HTML, 9.2.5 and 9.2.6. A line ends with CR, LF or both; an empty line
dispatches the event before it, if it has data; an event without an empty line at its end is not
dispatched. Bytes are enough to parse this: all line ends and field names are ASCII. The fields
``event``, ``id`` and ``retry`` do not change which events there are, and are skipped like comments.
"""

from __future__ import annotations

import json
from typing import Any, Literal

LONGEST_EVENT_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CR, LF = b"\r\n"
Format = Literal["sse", "ndjson"]


class ServerSentEvents:
    """Splits bytes, in pieces of any size, into server-sent events.

    The length of an event is that of its data, in UTF-8. ``end_marker`` is the whole data of the
    event that ends a stream (one line; empty: there is none). ``too_long`` says that an event's
    lines, with comments before it, were longer than they may be: no further bytes are taken.
    """

    __slots__ = ("_after_cr", "_begun", "_block", "_last", "_line", "_marker", "_pending", "_size",
                 "too_long")  # fmt: skip

    def __init__(self, end_marker: str = "") -> None:
        self._marker = end_marker.encode()
        # An unfinished line.
        self._pending = bytearray()
        # The unfinished event: the bytes of its lines, the bytes of its data with an LF after each
        # line, and its last line of data.
        self._block = self._size = 0
        self._line = b""
        # The last event: its last line of data, and its data's length.
        self._last = (b"", -1)
        self._begun = self._after_cr = self.too_long = False

    def feed(self, data: bytes) -> list[int]:
        """Take bytes; return the length of each event that they completed, in bytes."""
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == LF:
                data = data[1:]
        if not data or self.too_long:
            return []
        # Of bytes, only CR, LF and both end a line.
        lines = data.splitlines()
        self._after_cr = data[-1] == CR
        rest = b"" if self._after_cr or data[-1] == LF else lines.pop()
        lengths: list[int] = []
        if lines:
            if self._pending:
                lines[0] = bytes(self._pending + lines[0])
                self._pending.clear()
            if not self._begun:
                self._begun = True
                first = lines[0].removeprefix(BYTE_ORDER_MARK)
                self._block += len(lines[0]) - len(first)
                lines[0] = first
            self._take(lines, lengths)
        self._pending += rest
        if self._block + len(self._pending) > LONGEST_EVENT_BYTES:
            self.too_long = True
        return lengths

    def _take(self, lines: list[bytes], lengths: list[int]) -> None:
        block, size, last = self._block, self._size, self._line
        for line in lines:
            if line:
                block += len(line) + 1
                if line.startswith(b"data:"):
                    last = line
                    size += len(line) - 4 - line.startswith(b" ", 5)
                elif line == b"data":
                    last = line
                    size += 1
            else:
                if block > LONGEST_EVENT_BYTES:
                    break
                if size:
                    lengths.append(size - 1)
                    self._last = (last, size - 1)
                block = size = 0
        self._block, self._size, self._line = block, size, last

    @property
    def is_ended(self) -> bool:
        """Whether the last event so far is the end marker."""
        line, size = self._last
        # Data of several lines is longer than its last line, and no end marker.
        last = line[5 + line.startswith(b" ", 5) :]
        return bool(self._marker) and size == len(last) and last == self._marker


def members_of(end_marker: str) -> dict[str, Any]:
    """Return the members that an end marker like ``"done":true`` names; ValueError if none."""
    try:
        members = json.loads("{" + end_marker + "}")
    except ValueError:
        members = {}
    if not members:
        raise ValueError(
            f"end_marker {end_marker!r:.80} is no member of a JSON object; give it like "
            '"done":true, quotes included'
        )
    return dict(members)


class JsonLines:
    """Splits bytes into lines of newline-delimited JSON; see :class:`ServerSentEvents`.

    The length of a line is without its end. The end marker names members that the object in the
    last line of a stream has.
    """

    __slots__ = ("_last", "_members", "_pending", "too_long")

    def __init__(self, end_marker: str = "") -> None:
        self._members = members_of(end_marker) if end_marker else {}
        self._pending = bytearray()
        self._last = b""
        self.too_long = False

    def feed(self, data: bytes) -> list[int]:
        """Take bytes; return the length of each line that they completed, in bytes."""
        if self.too_long:
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        lengths: list[int] = []
        if lines:
            if self._pending:
                lines[0] = bytes(self._pending + lines[0])
                self._pending.clear()
            self._take(lines, lengths)
        self._pending += rest
        # A CR at the end may belong to the line end.
        if len(self._pending) - self._pending.endswith(b"\r") > LONGEST_EVENT_BYTES:
            self.too_long = True
        return lengths

    def _take(self, lines: list[bytes], lengths: list[int]) -> None:
        for line in lines:
            size = len(line) - line.endswith(b"\r")
            if size > LONGEST_EVENT_BYTES:
                self.too_long = True
                return
            if size:
                lengths.append(size)
                self._last = line

    @property
    def is_ended(self) -> bool:
        """Whether the last line so far has the members of the end marker."""
        if not self._members:
            return False
        try:
            last = json.loads(self._last)
        except ValueError:
            return False
        # Compared as text: true and 1 are equal in Python, and differ in JSON.
        return isinstance(last, dict) and all(
            name in last and _as_text(last[name]) == _as_text(value)
            for name, value in self._members.items()
        )


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


FORMATS: dict[Format, type[ServerSentEvents] | type[JsonLines]] = {
    "sse": ServerSentEvents,
    "ndjson": JsonLines,
}
