"""What the service counts since its start or its last reset."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]


class BrokenOff(Exception):
    """An answer that has begun cannot be ended as it said."""


@dataclass
class Counts:
    """Plain numbers; any thread may add to them.

    ``in_flight`` are downloads between their request and the last byte of their answer;
    ``completed`` and ``redirected`` those that were given to the server whole, also where their
    client was gone; ``bytes_read`` came from the store; ``refused`` is by code.
    """

    in_flight: int = 0
    most_in_flight: int = 0
    completed: int = 0
    redirected: int = 0
    bytes_read: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Count a download that begins."""
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self, status: int, is_whole: bool) -> None:
        """Count a download that has ended."""
        with self._lock:
            self.in_flight -= 1
            self.completed += is_whole and status == 200
            self.redirected += is_whole and status == 307

    def read(self, length: int) -> None:
        """Count bytes that came from the store."""
        with self._lock:
            self.bytes_read += length

    def refuse(self, code: str) -> None:
        """Count a refusal."""
        with self._lock:
            self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero."""
        with self._lock:
            fresh = Counts(in_flight=self.in_flight, most_in_flight=self.in_flight)
            for each in fields(Counts):
                setattr(self, each.name, getattr(fresh, each.name))

    def shown(self) -> dict[str, Any]:
        """Return the counts, with the memory of the process. Source: proc(5), status."""
        with self._lock:
            counted = {each.name: getattr(self, each.name) for each in fields(Counts)}
            counted["refused"] = dict(self.refused)
        lines = Path("/proc/self/status").read_text().splitlines()
        resident = next(line for line in lines if line.startswith("VmRSS:"))
        return {
            **counted,
            "rss_bytes": 1024 * int(resident.split()[1]),
            "monotonic_ns": time.monotonic_ns(),
        }


class Counting:
    """ASGI middleware that counts downloads, and ends those that were broken off."""

    def __init__(self, app: Callable[..., Awaitable[None]], counts: Counts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not scope["path"].startswith("/performance/"):
            await self._app(scope, receive, send)
            return
        status = length = given = 0

        async def send_counted(message: Message) -> None:
            nonlocal status, length, given
            if message["type"] == "http.response.start":
                status = message["status"]
                length = int(dict(message["headers"]).get(b"content-length", 0))
            await send(message)
            given += len(message.get("body", b""))

        self._counts.begin()
        try:
            await self._app(scope, receive, send_counted)
        except BrokenOff:
            # The server ends the connection of an answer that is shorter than it said.
            pass
        finally:
            self._counts.end(status, given == length)
