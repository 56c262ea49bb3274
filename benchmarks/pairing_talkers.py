"""Users of the chat service who talk within windows: the closed loop of benchmarks/pairing.py."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from perflab.load.users import action
from perflab.systems.chat.users import DIGITS, MARK, Connected, marked

TEXT = "what is said here is as long as most of what the study's users say"
DAY_NS = 86_400 * 10**9
# A user thinks so long, and users begin so far apart: without either the client, which is given
# each text many times over, is as busy as the service.
THINKS_S = (0.010, 0.030)
APART_NS = 1_000_000


class Talker(Connected):
    """Says something to a channel, and the next soon after that was delivered to the user, too.

    Parameter of the script besides those of :class:`Connected`: ``spans``, begin and end of each
    window in s from the load's start. Out of them nobody says anything, nor logs in: the service
    may be paused.
    """

    def __init__(self, number: int, seed: int, parameters: Mapping[str, Any]) -> None:
        super().__init__(number, seed, parameters)
        self._spans = [
            (round(since * 1e9), round(until * 1e9)) for since, until in parameters["spans"]
        ]
        self._begins = [since for since, _ in self._spans]
        self._own = b""
        self._delivered = asyncio.Event()

    async def on_start(self) -> None:
        """Log in and connect in the first window."""
        now_ns = self.now_ns()
        await self.pause((self._opening_ns(now_ns) - now_ns) / 1e9)
        await super().on_start()

    def first_due_ns(self) -> int:
        """Return when the first text is due."""
        return self._opening_ns(self.now_ns())

    def wait(self) -> float:
        """Return the seconds until the next text: a thought, and the rest of a gap."""
        now_ns = self.now_ns()
        thought_ns = now_ns + round(self.random.uniform(*THINKS_S) * 1e9)
        return (self._opening_ns(thought_ns) - now_ns) / 1e9

    def _opening_ns(self, at_ns: int) -> int:
        """Return an instant if it lies in a window, else the next begin; after the last, never."""
        load_ns = at_ns - self.load_began_ns
        number = bisect_right(self._begins, load_ns) - 1
        if number >= 0 and load_ns < self._spans[number][1]:
            return at_ns
        begins = [*self._begins, DAY_NS]
        return self.load_began_ns + begins[number + 1] + self.number * APART_NS

    def hear(self, frame: bytes, at_ns: int) -> None:
        """Record what arrives, and note one's own text."""
        super().hear(frame, at_ns)
        if self._own in frame:
            self._delivered.set()

    def closed(self, kind: str, code: int) -> None:
        """Wait for nothing any more."""
        super().closed(kind, code)
        self._delivered.set()

    @action
    async def talk(self) -> None:
        """Say something, and wait until it is delivered."""
        self._own = MARK + f"{self.due_ns:0{DIGITS}d}".encode()
        self._delivered.clear()
        text = marked(self.due_ns, TEXT)
        channel = self.random.choice(sorted(self.mine))
        self.say("send", {"kind": "send", "channel": channel, "text": text})
        await self._delivered.wait()
