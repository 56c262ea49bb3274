"""Closing connections that owe something and never give it.

Uvicorn waits for ever for the first byte, for the rest of a request, and for a peer to read its
answer. All HTTP connections are looked at now and then, so that requests cost nothing more. A
WebSocket is not looked at here: its users may be silent, and answer pings (``keepalive_s``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from chat.counts import Counts

MUTE = "mute"
# So many looks within the time that is allowed.
LOOKS = 4


class Patience:
    """Watches the server's connections."""

    def __init__(self, connections: Collection[Any], patience_s: float, counts: Counts) -> None:
        self._connections = connections
        self._patience_s = patience_s
        self._counts = counts
        self._owing: dict[HttpToolsProtocol, tuple[object, float]] = {}

    async def watch(self) -> None:
        """Look until cancelled; with a patience of 0 never."""
        loop = asyncio.get_running_loop()
        while self._patience_s:
            await asyncio.sleep(self._patience_s / LOOKS)
            self.look(loop.time())

    def look(self, now_s: float) -> None:
        """Cut every connection that has owed the same for too long."""
        before, self._owing = self._owing, {}
        for each in tuple(self._connections):
            owed = _owed(each) if isinstance(each, HttpToolsProtocol) else None
            if owed is None:
                continue
            known, since_s = before.get(each, (None, now_s))
            if known is not owed:
                since_s = now_s
            if now_s - since_s < self._patience_s:
                self._owing[each] = owed, since_s
            elif each.transport is not None:
                self._counts.refuse(MUTE)
                each.transport.abort()


def _owed(http: HttpToolsProtocol) -> object | None:
    """Return what stays the same while the peer owes a request, its rest, or reading the answer."""
    cycle = http.cycle
    if cycle is None:
        return http
    if cycle.response_complete or cycle.more_body or http.flow.write_paused:
        return cycle
    return None
