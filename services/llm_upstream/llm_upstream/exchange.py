"""One request and its answer over ASGI."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from specimen.presence import ClientGone

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
clock = time.monotonic_ns


async def until(due_ns: int) -> None:
    """Wait for an instant of the monotonic clock.

    Event loops round to a millisecond: up, so that nothing is ever early.
    """
    # Who never waits would never hear that the reader has gone.
    await asyncio.sleep(0)
    while (left_ns := due_ns - clock()) > 0:
        await asyncio.sleep(math.ceil(left_ns / 1e6) / 1e3)


class Exchange:
    """One request; ``receive`` is for its reader's end once the body was read."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive, self._send = receive, send
        self._headers = dict(scope["headers"])

    def header(self, name: str) -> str:
        """Return a header's text, or an empty one."""
        return str(self._headers.get(name.encode(), b"").decode("latin-1"))

    async def body(self) -> bytes:
        """Read the request."""
        parts = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                return b"".join(parts)

    async def start(self, status: int, headers: dict[str, str]) -> None:
        """Send status and headers."""
        pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def give(self, data: bytes, more: bool = True) -> None:
        """Send a part of the body; waits while the reader is slow."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status: int, content: str) -> None:
        """Send an answer in one piece."""
        data = content.encode()
        length = str(len(data))
        await self.start(status, {"content-type": "application/json", "content-length": length})
        await self.give(data, more=False)
