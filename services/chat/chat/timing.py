"""Server-Timing: phases of an HTTP request in ms; ``app`` is all of the application's time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

KEY = "chat.phases"
clock = time.perf_counter_ns


class Phases:
    """Durations of one request, in ms."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}
        self._begin_ns = clock()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the block's time to a phase, even when the block fails."""
        begin_ns = clock()
        try:
            yield
        finally:
            took_ms = (clock() - begin_ns) / 1e6
            self.durations_ms[name] = self.durations_ms.get(name, 0.0) + took_ms

    def header(self) -> bytes:
        """Return the header's value."""
        self.durations_ms["app"] = (clock() - self._begin_ns) / 1e6
        return ", ".join(
            f"{name};dur={duration:.6g}" for name, duration in self.durations_ms.items()
        ).encode()


class ServerTiming:
    """ASGI middleware that adds the header to HTTP answers; WebSockets pass through untouched."""

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
                headers = [*message.get("headers", []), (b"server-timing", phases.header())]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_timed)
