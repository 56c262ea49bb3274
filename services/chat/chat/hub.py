"""The message path: a frame comes in, is stored, and goes out to every subscriber.

Everything that goes to a user, messages and pongs alike, waits in one queue and leaves in its
order. A user who does not read fills only that queue; when it is full the connection ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from specimen.refusal import Refused
from starlette.websockets import WebSocket, WebSocketDisconnect

from chat.channels import Channels
from chat.codecs import CODERS, Frame
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send, Subscribe, Unsubscribe, tag_of
from chat.settings import Settings
from chat.store import Commits, Counts

SLOW_READER = 4408
# Frames that may wait for one connection.
QUEUE = 1000
GONE = (OSError, RuntimeError, WebSocketDisconnect)
Event = dict[str, Any]


class Connection:
    """A connected user: the WebSocket, its queue, and the task that empties it."""

    __slots__ = ("_counts", "_queue", "_socket", "_under_way", "_woken", "is_closing", "user")

    def __init__(self, user: str, socket: WebSocket, counts: Counts) -> None:
        self.user = user
        self.is_closing = False
        self._counts = counts
        self._socket = socket
        # An event for the socket, and how many messages it is: 1 or, for other envelopes, 0.
        self._queue: deque[tuple[Event, int]] = deque()
        self._under_way = 0
        self._woken = asyncio.Event()

    def offer(self, event: Event, messages: int) -> bool:
        """Put an event into the queue; return False where the queue is full or ends."""
        if self.is_closing or len(self._queue) >= QUEUE:
            return False
        self._queue.append((event, messages))
        self._woken.set()
        return True

    async def write(self) -> None:
        """Send what comes into the queue until the connection ends."""
        queue, send, counts = self._queue, self._socket.send, self._counts
        try:
            while True:
                while queue:
                    event, self._under_way = queue.popleft()
                    await send(event)
                    counts.delivered += self._under_way
                    self._under_way = 0
                if self.is_closing:
                    return
                self._woken.clear()
                await self._woken.wait()
        except GONE:
            pass  # the reader is told too, and ends the connection
        finally:
            self.is_closing = True

    def close(self, code: int, reason: str) -> None:
        """Give up what waits, say why, and end once the peer has read that, or is gone."""
        self.give_up()
        self._queue.append(({"type": "websocket.close", "code": code, "reason": reason}, 0))
        self._woken.set()

    def give_up(self) -> None:
        """Take no more, and count the messages that will not be delivered.

        One whose sending ends here is counted as well, though some of it may arrive.
        """
        self.is_closing = True
        self._counts.dropped += self._under_way + sum(messages for _, messages in self._queue)
        self._under_way = 0
        self._queue.clear()


class Hub:
    """All connections of the service."""

    def __init__(
        self,
        settings: Settings,
        channels: Channels,
        commits: Commits,
        counts: Counts,
        first_sequence: int,
    ) -> None:
        self._connections: set[Connection] = set()
        self._channels = channels
        self._commits = commits
        self._counts = counts
        self._coder = CODERS[settings.codec]["envelope"]
        self._per_send = settings.serialize == "per_send"
        self._sequence = first_sequence
        self._handlers: Mapping[type, Callable[[Connection, Any], None]] = {
            Send: self._send,
            Subscribe: self._join_or_leave,
            Unsubscribe: self._join_or_leave,
            Ping: self._ping,
        }

    async def serve(self, socket: WebSocket, user: str) -> None:
        """Serve an accepted WebSocket until it ends."""
        connection = Connection(user, socket, self._counts)
        self._connections.add(connection)
        self._counts.add(open=1)
        self._channels.enter(connection)
        writer = asyncio.get_running_loop().create_task(connection.write())
        try:
            await self._read(connection, socket)
        finally:
            self._part(connection)
            connection.give_up()
            writer.cancel()

    async def _read(self, connection: Connection, socket: WebSocket) -> None:
        while True:
            try:
                event = await socket.receive()
            except GONE:
                return
            if event["type"] == "websocket.disconnect":
                return
            frame = event.get("bytes")
            if not connection.is_closing:
                self._handle(connection, event["text"] if frame is None else frame)
                # A user who sends without pause must not keep the others from their turn.
                await asyncio.sleep(0)

    def _handle(self, connection: Connection, frame: Frame) -> None:
        """Do what a frame asks for, or answer why not."""
        stamp = 0
        try:
            envelope = self._coder.decode(frame)
            stamp = getattr(envelope, "stamp", 0)
            handler = self._handlers.get(type(envelope))
            if handler is None:
                reason = f"only the service sends '{tag_of(type(envelope))}'"
                raise Refused(400, "bad_frame", reason)
            handler(connection, envelope)
        except Refused as refused:
            self._refuse(connection, refused, stamp)

    def _send(self, connection: Connection, asked: Send) -> None:
        members = self._channels.members(asked.channel)
        if connection not in members:
            raise Refused(403, "not_subscribed", f"subscribe to {asked.channel} to write to it")
        message = Message(asked.channel, connection.user, self._sequence, asked.text)
        self._sequence += 1

        def answer(problem: Refused | None) -> None:
            if problem is None:
                self._counts.acknowledged += 1
                self._tell(connection, Ack(message.sequence, asked.stamp))
            else:
                self._refuse(connection, problem, asked.stamp)

        self._counts.received += 1
        self._commits.message(message, answer)
        # A full queue takes its connection out of the channel, hence the copy.
        self._deliver(tuple(members), message)

    def _deliver(self, members: Iterable[Connection], message: Message) -> None:
        native, event = self._coder.native(message), None
        for connection in members:
            if event is None or self._per_send:
                event = self._event_of(self._coder.dumps(native))
            if not connection.offer(event, 1):
                self._drop(connection, 1)

    @staticmethod
    def _event_of(frame: Frame) -> Event:
        return {"type": "websocket.send", "text" if isinstance(frame, str) else "bytes": frame}

    def _tell(self, connection: Connection, envelope: Ack | Pong | Error) -> None:
        if not connection.offer(self._event_of(self._coder.encode(envelope)), 0):
            self._drop(connection, 0)

    def _drop(self, connection: Connection, messages: int) -> None:
        self._counts.dropped += messages
        self._part(connection)
        if not connection.is_closing:
            self._counts.refuse("slow_reader")
            connection.close(SLOW_READER, "slow_reader")

    def _part(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._counts.add(open=-1)
            self._channels.part(connection)

    def _refuse(self, connection: Connection, refused: Refused, stamp: int) -> None:
        self._counts.refuse(refused.code)
        self._tell(connection, Error(refused.code, refused.reason, stamp))

    def _join_or_leave(self, connection: Connection, asked: Subscribe | Unsubscribe) -> None:
        members, joins = self._channels.members(asked.channel), isinstance(asked, Subscribe)
        self._commits.subscription(connection.user, asked.channel, joins)
        self._channels.change(connection.user, asked.channel, joins)
        if joins:
            members[connection] = None
        else:
            members.pop(connection, None)
        self._tell(connection, Ack(0, asked.stamp))

    def _ping(self, connection: Connection, asked: Ping) -> None:
        self._tell(connection, Pong(asked.stamp))
