"""Whether a download's client is still there, and what ends when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from registry.counts import Counts
from registry.refusal import ClientGone

KEY = "registry.presence"
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Presence:
    """One client's; a part that waits for it leaves word of how its waiting can be ended.

    It is told in the event loop's thread, and so not while a handler blocks that.
    """

    def __init__(self) -> None:
        self.gone = False
        self.noticed = asyncio.Event()
        self._endings: list[Callable[[], object]] = []

    def takes(self, end: Callable[[], object]) -> None:
        """Have ``end`` called when the client goes.

        Raises
        ------
        ClientGone
            It has gone.
        """
        self._endings.append(end)
        if self.gone:
            end()
            raise ClientGone

    def leave(self) -> None:
        """Note that the client has gone, and end what waits for it."""
        self.gone = True
        self.noticed.set()
        for end in tuple(self._endings):
            end()

    def forget(self) -> None:
        """Let go of all that was left, at the end of the request."""
        self._endings.clear()


class Watching:
    """ASGI middleware that listens for the client's end beside the handler, and counts."""

    def __init__(self, app: Callable[..., Awaitable[None]], counts: Counts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Any) -> None:
        """Handle one request; the body that a GET may have is dropped."""
        if scope["type"] != "http" or not scope["path"].startswith("/performance/"):
            await self._app(scope, receive, send)
            return
        presence = scope[KEY] = Presence()
        watched = _Watched(presence, send)
        listening = asyncio.create_task(watched.listen(receive))
        self._counts.begin()
        try:
            with suppress(ClientGone):
                await self._app(scope, watched.receive, watched.send)
        finally:
            listening.cancel()
            presence.forget()
            self._counts.end(watched.outcome(), watched.given)


class _Watched:
    """Both directions of one request, and how it went."""

    def __init__(self, presence: Presence, send: Any) -> None:
        self.given = 0
        self._presence, self._send = presence, send
        self._has_request = self._is_whole = False
        self._status = self._length = 0

    async def receive(self) -> MutableMapping[str, Any]:
        if not self._has_request:
            self._has_request = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._presence.noticed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._length = int(dict(message["headers"]).get(b"content-length", 0))
        # Before it is sent: with the last byte a client may go, and has lost nothing.
        elif self._status < 400:
            self.given += len(message.get("body", b""))
            self._is_whole = self.given == self._length and not self._presence.gone
        await self._send(message)

    async def listen(self, receive: Receive) -> None:
        """Wait for the client's end; what comes after the whole answer is none."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self._is_whole:
            self._presence.leave()

    def outcome(self) -> str:
        """Return which of the counts this request adds to."""
        if self._status == 307 and self._is_whole:
            return "redirected"
        if self._status == 200 and self._is_whole:
            return "completed"
        return "aborted" if self._presence.gone else ""
