"""Server-Timing: inner phases of a request, reported in its own header.

``app`` begins when the server hands the request over; what a connection waited before is outside.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

KEY = "phases"
clock = time.perf_counter_ns


class Phases:
    """Durations of one request's phases, in ms; those of one name add up, in whichever threads."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}
        self.begin_ns = clock()
        self._answered_ns = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as a phase, even when it fails."""
        begin_ns = clock()
        try:
            yield
        finally:
            self.add(name, begin_ns)

    def add(self, name: str, begin_ns: int) -> None:
        """Add a phase that began earlier and ends now."""
        took_ms = (clock() - begin_ns) / 1e6
        self.durations_ms[name] = self.durations_ms.get(name, 0.0) + took_ms

    def reached(self, name: str) -> None:
        """Note how long after the request's begin something has happened."""
        self.durations_ms[name] = (clock() - self.begin_ns) / 1e6

    def done(self) -> None:
        """Note that the endpoint has its answer; the phase ``answer`` is what is left to do."""
        self._answered_ns = clock()

    def header(self) -> str:
        """Return the header's value, with ``app``: all until the answer begins."""
        if self._answered_ns:
            self.add("answer", self._answered_ns)
        self.reached("app")
        # A copy at once: a part that outlives its request may still add to it.
        noted = dict(self.durations_ms)
        return ", ".join(f"{name};dur={ms:.6g}" for name, ms in noted.items())


class ServerTiming:
    """ASGI middleware that gives each request its ``Phases``, and the answer their header."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        phases = scope[KEY] = Phases()

        async def send_timed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                timed = (b"server-timing", phases.header().encode())
                message = {**message, "headers": [*message.get("headers", []), timed]}
            await send(message)

        await self._app(scope, receive, send_timed)
