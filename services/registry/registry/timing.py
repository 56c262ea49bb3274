"""Server-Timing: phases of a request in ms; ``app`` is all of the application's time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

KEY = "registry.phases"
clock = time.perf_counter_ns


class Phases:
    """Durations of one request, in ms; phases may end in any thread, one after the other."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}
        self.begin_ns = clock()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the block's time to a phase, even when the block fails."""
        begin_ns = clock()
        try:
            yield
        finally:
            self.add(name, begin_ns)

    def add(self, name: str, begin_ns: int) -> None:
        """Add the time since an instant to a phase."""
        took_ms = (clock() - begin_ns) / 1e6
        self.durations_ms[name] = self.durations_ms.get(name, 0.0) + took_ms

    def header(self) -> bytes:
        """Return the header's value."""
        self.add("app", self.begin_ns)
        # A copy at once: a part that outlives its request may still add to it.
        noted = dict(self.durations_ms)
        return ", ".join(f"{name};dur={took:.6g}" for name, took in noted.items()).encode()


class ServerTiming:
    """ASGI middleware that adds the header to every answer."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Handle one request."""
        phases = scope[KEY] = Phases()

        async def send_timed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", []), (b"server-timing", phases.header())]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_timed)
