"""One user's WebSocket: a bounded queue, and the task that empties it.

Everything that goes to a user, messages and pongs alike, waits in the one queue and leaves in its
order. A user who does not read fills only that queue; when it is full the connection ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from chat.breaking import GRACE_S, cut
from chat.counts import Counts

Event = dict[str, Any]
# An event for the socket, and how many messages it is: 1 or, for other envelopes, 0.
Queued = tuple[Event, int]
GONE = (OSError, RuntimeError, WebSocketDisconnect)


class Connection:
    """A connected user."""

    __slots__ = (
        "_limit",
        "_loop",
        "_socket",
        "_under_way",
        "_wake",
        "closing",
        "counts",
        "pinged_at_ns",
        "pinged_delivered",
        "queue",
        "user",
    )

    def __init__(self, user: str, socket: WebSocket, limit: int, counts: Counts) -> None:
        self.user = user
        self.queue: deque[Queued] = deque()
        self.closing = False
        self.counts = counts
        self.pinged_at_ns = time.monotonic_ns()
        self.pinged_delivered = counts.delivered
        self._socket = socket
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.Future[None] | None = None
        self._under_way = 0

    def offer(self, queued: Queued) -> bool:
        """Put an event into the queue; return False where the queue is full or ends."""
        if self.closing or len(self.queue) >= self._limit:
            return False
        self.queue.append(queued)
        self._rouse()
        return True

    def _rouse(self) -> None:
        wake = self._wake
        if wake is not None:
            self._wake = None
            if not wake.done():
                wake.set_result(None)

    async def write(self) -> None:
        """Send what comes into the queue until the connection ends."""
        queue, send, counts = self.queue, self._socket.send, self.counts
        try:
            while True:
                while queue:
                    event, self._under_way = queue.popleft()
                    await send(event)
                    counts.delivered += self._under_way
                    self._under_way = 0
                if self.closing:
                    return
                self._wake = self._loop.create_future()
                await self._wake
        except GONE:
            pass  # the reader is told too, and ends the connection
        finally:
            self.closing = True

    def close(self, code: int, reason: str) -> None:
        """Give up what waits, say why, and end; a peer that does not read is cut off soon."""
        if self.closing:
            return
        self.give_up()
        self.queue.append(({"type": "websocket.close", "code": code, "reason": reason}, 0))
        self._loop.call_later(GRACE_S, cut, self._socket)
        self._rouse()

    def give_up(self) -> None:
        """Take no more, and count the messages that will not be delivered.

        One whose sending ends here is counted as well, though some of it may arrive.
        """
        self.closing = True
        self.counts.dropped += self._under_way + sum(messages for _, messages in self.queue)
        self._under_way = 0
        self.queue.clear()
