"""Server-Timing: inner phases of a request, reported in its own header.

An ASGI application cannot see the accept queue: ``app`` begins when the server hands the request
over, so what a connection waited before that is outside.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

Scope = MutableMapping[str, Any]
KEY = "phases"


class Phases:
    """Durations of one request's phases, in ms."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}
        self.begin_ns = time.perf_counter_ns()
        self._done_ns = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as a phase, even when it fails."""
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(name, begin)

    def add(self, name: str, begin_ns: int) -> None:
        """Note a phase that began earlier and ends now."""
        self.durations_ms[name] = (time.perf_counter_ns() - begin_ns) / 1e6

    def arrived(self) -> None:
        """Note that the request has been read and checked: the endpoint has it."""
        self.add("request", self.begin_ns)

    def done(self) -> None:
        """Note that the endpoint has its answer: what is left is to check it and to answer."""
        self._done_ns = time.perf_counter_ns()

    def header(self) -> bytes:
        """Return the header's value."""
        if self._done_ns:
            self.add("answer", self._done_ns)
        self.add("app", self.begin_ns)
        return ", ".join(
            f"{name};dur={duration:.3f}" for name, duration in self.durations_ms.items()
        ).encode()


class ServerTiming:
    """ASGI middleware that times the application and adds the header."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
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
