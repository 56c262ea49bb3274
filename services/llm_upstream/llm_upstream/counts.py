"""What the stand-in counts since its start or its last reset, and its latest streams."""

from __future__ import annotations

import time
from array import array
from collections import deque
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

# Of one stream; an endless one has no end.
KEPT_TOKENS = 20_000


@dataclass
class Stream:
    """One answer that was streamed: when each token was due and when it was given away.

    Both are CLOCK_MONOTONIC in ns. ``sent_ns`` is taken before the token goes to the transport: no
    reader can have it earlier, and what a slow reader makes wait counts from there.
    """

    number: int
    request_id: str
    begun_ns: int
    outcome: str = "open"
    due_ns: array[int] = field(default_factory=lambda: array("q"))
    sent_ns: array[int] = field(default_factory=lambda: array("q"))

    def note(self, due_ns: int, sent_ns: int) -> None:
        """Keep the instants of one token, of the first ones of a stream."""
        if len(self.sent_ns) < KEPT_TOKENS:
            self.due_ns.append(due_ns)
            self.sent_ns.append(sent_ns)

    def shown(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "stream": self.number,
            "request_id": self.request_id,
            "begun_ns": self.begun_ns,
            "outcome": self.outcome,
            "due_ns": self.due_ns.tolist(),
            "sent_ns": self.sent_ns.tolist(),
        }


@dataclass
class Counts:
    """Plain numbers of one event loop.

    ``open`` are answers under way, streamed or whole. One is ``ended`` when all of it was given
    away, ``aborted`` when its reader went before, ``broken`` when a fault of its own ended it.
    """

    begun: int = 0
    open: int = 0
    most_open: int = 0
    ended: int = 0
    aborted: int = 0
    broken: int = 0
    whole_answers: int = 0
    tool_calls: int = 0
    tokens_sent: int = 0
    bytes_sent: int = 0
    latest_late_ns: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Count an answer that begins."""
        self.begun += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)

    def end(self, outcome: str) -> None:
        """Count an answer that is over: ``ended``, ``aborted`` or ``broken``."""
        self.open -= 1
        setattr(self, outcome, getattr(self, outcome) + 1)

    def token(self, late_ns: int) -> None:
        """Count a token, and how long after it was due it went out."""
        self.tokens_sent += 1
        self.latest_late_ns = max(self.latest_late_ns, late_ns)

    def refuse(self, code: str) -> None:
        """Count a refusal by its code."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero."""
        fresh = Counts()
        for each in fields(Counts):
            setattr(self, each.name, getattr(fresh, each.name))

    def shown(self, connections: int) -> dict[str, Any]:
        """Return the counts, with what the process itself uses now."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(Counts)},
            "connections": connections,
            "files": len(list(Path("/proc/self/fd").iterdir())),
            "cpu_s": time.process_time(),
            "rss_bytes": rss_bytes(),
            "monotonic_ns": time.monotonic_ns(),
        }


def rss_bytes() -> int:
    """Return this process's resident memory. Source: proc(5), status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def kept(streams: int) -> deque[Stream]:
    """Return a place for the latest streams."""
    return deque(maxlen=streams)
