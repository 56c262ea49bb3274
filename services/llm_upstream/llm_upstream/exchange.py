"""One request and its answer over ASGI, and whether its reader is still there."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from llm_upstream.refusal import ReaderGone, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MOST_BODY_BYTES = 16_000_000
clock = time.monotonic_ns


class Broken(Exception):
    """The answer ends in the middle, on purpose: the server closes the connection."""


class Exchange:
    """One request; ``watch`` listens for its reader's end once the body was read."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive, self._send = receive, send
        self._headers = dict(scope["headers"])
        self._gone = False
        self._waiting: asyncio.Future[None] | None = None

    def header(self, name: str) -> str:
        """Return a header's text, or an empty one."""
        return str(self._headers.get(name.encode(), b"").decode("latin-1"))

    async def body(self) -> bytes:
        """Read the request; raise Refused for one that is too long."""
        parts, length = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ReaderGone
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > MOST_BODY_BYTES:
                raise Refused(413, "too_large", f"a request has {MOST_BODY_BYTES} bytes at most")
            if not message.get("more_body"):
                return b"".join(parts)

    async def watch(self) -> None:
        """Wait for the reader's end, and end what waits for an instant."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    async def until(self, due_ns: int | None) -> None:
        """Wait for an instant of the monotonic clock, or (None) only for the reader's end.

        Event loops round to a millisecond: up, so that nothing is ever early.

        Raises
        ------
        ReaderGone
            Nobody reads any more.
        """
        loop = asyncio.get_running_loop()
        # One that never waits would never hear that its reader has gone.
        await asyncio.sleep(0)
        while not self._gone and (due_ns is None or clock() < due_ns):
            self._waiting = loop.create_future()
            timer = None
            if due_ns is not None:
                delay_s = math.ceil((due_ns - clock()) / 1e6) / 1e3
                timer = loop.call_later(max(0.0, delay_s), self._wake)
            try:
                await self._waiting
            finally:
                if timer:
                    timer.cancel()
        if self._gone:
            raise ReaderGone

    async def start(self, status: int, headers: dict[str, str]) -> None:
        """Send status and headers."""
        pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def give(self, data: bytes, more: bool = True) -> None:
        """Send a part of the body; waits while the reader is slow."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status: int, content_type: str, data: bytes) -> None:
        """Send an answer in one piece."""
        await self.start(status, {"content-type": content_type, "content-length": str(len(data))})
        await self.give(data, more=False)
