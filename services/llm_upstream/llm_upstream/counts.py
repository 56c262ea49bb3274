"""What the stand-in counts since its start or its last reset, and its latest streams."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from specimen import counts


@dataclass
class Stream:
    """When each token of a streamed answer was due and was sent: CLOCK_MONOTONIC in ns.

    ``sent_ns`` is taken before the token goes to the transport: no reader can have it earlier, and
    what a slow reader makes wait counts from there.
    """

    begun_ns: int
    due_ns: array[int] = field(default_factory=lambda: array("q"))
    sent_ns: array[int] = field(default_factory=lambda: array("q"))

    def note(self, due_ns: int, sent_ns: int) -> None:
        """Keep the instants of one token."""
        self.due_ns.append(due_ns)
        self.sent_ns.append(sent_ns)

    def shown(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        instants = {"due_ns": self.due_ns.tolist(), "sent_ns": self.sent_ns.tolist()}
        return {"begun_ns": self.begun_ns, **instants}


@dataclass
class Counts(counts.Counts):
    """Answers, streamed or whole: ``ended`` when all was given away, ``aborted`` when its reader
    went before.
    """

    begun: int = 0
    ended: int = 0
    aborted: int = 0
    tokens_sent: int = 0
