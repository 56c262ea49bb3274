"""Newline-delimited JSON, told apart as its bytes come; none is kept but the last line.

A line is an event; an empty one is none, and neither is one whose LF has not come (a CR before the
LF is no part of it). What a line holds is not looked at, but in the last one for the end marker.
"""

from __future__ import annotations

import json
from typing import Any

from perflab.load.events import LONGEST_EVENT_BYTES


def members_of(end_marker: str) -> dict[str, Any]:
    """Return the members that an end marker like ``"done":true`` names.

    Raises
    ------
    ValueError
        It names none.
    """
    try:
        found = json.loads("{" + end_marker + "}")
    except ValueError:
        found = {}
    if not found:
        raise ValueError(
            f"end_marker {end_marker!r:.80} is no member of a JSON object; give it like "
            '"done":true, quotes included'
        )
    return dict(found)


class JsonLines:
    """Tells the lines of newline-delimited JSON apart. The length is that of the line alone.

    Parameters
    ----------
    end_marker : str
        Members that the object in the last line of a stream has (empty: any).
    longest_bytes : int
        The most that a line may take.
    """

    __slots__ = ("_last", "_members", "_most", "_pending", "too_long")

    def __init__(self, end_marker: str = "", longest_bytes: int = LONGEST_EVENT_BYTES) -> None:
        self._members = members_of(end_marker) if end_marker else {}
        self._most = longest_bytes
        self._pending = bytearray()
        self._last = b""
        self.too_long = False

    def feed(self, data: bytes) -> list[int]:
        """Take bytes; return the length of each line that they completed, in bytes."""
        if self.too_long:
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        found: list[int] = []
        if lines:
            if self._pending:
                lines[0] = bytes(self._pending + lines[0])
                self._pending.clear()
            self._take(lines, found)
        self._pending += rest
        # A CR may still turn out to be of the line's end.
        if len(self._pending) - self._pending.endswith(b"\r") > self._most:
            self.too_long = True
        return found

    def _take(self, lines: list[bytes], found: list[int]) -> None:
        for line in lines:
            size = len(line) - line.endswith(b"\r")
            if size > self._most:
                self.too_long = True
                return
            if size:
                found.append(size)
                self._last = line

    @property
    def is_ended(self) -> bool:
        """Whether the last line so far has the members that were asked for."""
        if not self._members:
            return False
        try:
            last = json.loads(self._last)
        except ValueError:
            return False
        # As text: to Python true and 1 are equal, to JSON they are not.
        return isinstance(last, dict) and all(
            name in last and json.dumps(last[name], sort_keys=True) == wanted
            for name, wanted in self._wanted()
        )

    def _wanted(self) -> list[tuple[str, str]]:
        return [(name, json.dumps(value, sort_keys=True)) for name, value in self._members.items()]
