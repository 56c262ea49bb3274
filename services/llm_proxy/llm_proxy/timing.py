"""Server-Timing: instants of one request, in ms since it came."""

from __future__ import annotations

import time

clock = time.perf_counter_ns


class Phases:
    """Instants of one request; each name is noted once, when it first happens."""

    def __init__(self) -> None:
        self.begin_ns = clock()
        self.noted_ms: dict[str, float] = {}

    def note(self, name: str) -> None:
        """Note that something has happened by now."""
        self.noted_ms.setdefault(name, (clock() - self.begin_ns) / 1e6)

    def header(self) -> dict[str, str]:
        """Return the header; ``app`` is the time until the answer begins."""
        self.note("app")
        entries = (f"{name};dur={ms:.6g}" for name, ms in self.noted_ms.items())
        return {"Server-Timing": ", ".join(entries)}
