"""The message path: a frame comes in, is stored, and goes out to every subscriber."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket

from chat import codecs
from chat.channels import Channel, Channels
from chat.codecs import Coder, Frame
from chat.commits import Commits
from chat.connection import GONE, Connection, Event
from chat.counts import Counts
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send, Subscribe, Unsubscribe, tag_of
from chat.refusal import BadFrame, NotStored, NotSubscribed, Refused, TooLarge
from chat.settings import Settings
from chat.store import SUBSCRIPTION, message_statement

SLOW_READER = 4408
# After a start no sequence is used again, not even one that a killed process never stored.
SEQUENCES_PER_START = 1_000_000


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
        self.connections: dict[Connection, None] = {}
        self._settings = settings
        self._channels = channels
        self._commits = commits
        self._counts = counts
        self._coder: Coder = codecs.load(settings.codec)["envelope"]
        self._per_send = settings.serialize == "per_send"
        self._sequence = first_sequence
        self._handlers: Mapping[type, Callable[[Connection, Any], None]] = {
            Send: self._send,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Ping: self._ping,
        }

    async def serve(self, socket: WebSocket, user: str) -> None:
        """Serve an accepted WebSocket until it ends."""
        connection = Connection(user, socket, self._settings.send_queue, self._counts)
        self.connections[connection] = None
        for channel in self._channels.of(user):
            channel.members[connection] = None
        self._counts.connections += 1
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
            if not connection.closing:
                self.handle(connection, event["text"] if frame is None else frame)
                # A user who sends without pause must not keep the others from their turn.
                await asyncio.sleep(0)

    def handle(self, connection: Connection, frame: Frame) -> None:
        """Do what a frame asks for, or answer why not."""
        stamp = 0
        try:
            self._check_size(frame)
            envelope = self._coder.decode(frame)
            stamp = getattr(envelope, "stamp", 0)
            handler = self._handlers.get(type(envelope))
            if handler is None:
                raise BadFrame(f"only the service sends '{tag_of(type(envelope))}'")
            handler(connection, envelope)
        except Refused as refused:
            self._refuse(connection, refused, stamp)

    def _check_size(self, frame: Frame) -> None:
        limit = self._settings.max_message_bytes
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode())
        if size > limit:
            raise TooLarge(f"a frame of {size} bytes; the longest taken has {limit}")

    def _send(self, connection: Connection, asked: Send) -> None:
        channel = self._channels.named(asked.channel)
        if connection not in channel.members:
            raise NotSubscribed(f"subscribe to {channel.name} before you write to it")
        message = Message(channel.name, connection.user, self._sequence, asked.text)
        self._sequence += 1

        def answer(problem: NotStored | None) -> None:
            if problem is None:
                self._acknowledge(connection, message.sequence, asked.stamp)
            else:
                self._refuse(connection, problem, asked.stamp)

        self._commits.message(message_statement(message), answer)
        self._counts.received += 1
        self._deliver(channel, message)

    def _deliver(self, channel: Channel, message: Message) -> None:
        # A full queue takes its connection out of the channel, hence the copy.
        members = tuple(channel.members)
        native = self._coder.native(message)
        dumps, to_event = self._coder.dumps, self._event
        if self._per_send:
            for connection in members:
                if not connection.offer((to_event(dumps(native)), 1)):
                    self._drop(connection, 1)
            return
        queued = (to_event(dumps(native)), 1)
        for connection in members:
            if not connection.offer(queued):
                self._drop(connection, 1)

    @staticmethod
    def _event(frame: Frame) -> Event:
        return {"type": "websocket.send", "text" if isinstance(frame, str) else "bytes": frame}

    def _tell(self, connection: Connection, envelope: Ack | Pong | Error) -> None:
        event = self._event(self._coder.encode(envelope))
        if not connection.offer((event, 0)):
            self._drop(connection, 0)

    def _drop(self, connection: Connection, messages: int) -> None:
        self._counts.dropped += messages
        if not connection.closing:
            self._counts.slow_readers += 1
            self._counts.refuse("slow_reader")
        self._part(connection)
        connection.close(SLOW_READER, "slow_reader")

    def _part(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        for name in self._channels.names:
            self._channels.named(name).members.pop(connection, None)

    def _acknowledge(self, connection: Connection, sequence: int, stamp: int) -> None:
        self._counts.acknowledged += 1
        self._tell(connection, Ack(sequence, stamp))

    def _refuse(self, connection: Connection, refused: Refused, stamp: int) -> None:
        self._counts.refuse(refused.code)
        self._tell(connection, Error(refused.code, refused.reason, stamp))

    def _subscribe(self, connection: Connection, asked: Subscribe) -> None:
        channel = self._change(connection, asked.channel, subscribed=True)
        channel.members[connection] = None
        self._tell(connection, Ack(0, asked.stamp))

    def _unsubscribe(self, connection: Connection, asked: Unsubscribe) -> None:
        channel = self._change(connection, asked.channel, subscribed=False)
        channel.members.pop(connection, None)
        self._tell(connection, Ack(0, asked.stamp))

    def _change(self, connection: Connection, name: str, subscribed: bool) -> Channel:
        channel = self._channels.named(name)
        self._commits.change((SUBSCRIPTION, (connection.user, name, int(subscribed))))
        self._channels.change(connection.user, channel, subscribed)
        return channel

    def _ping(self, connection: Connection, asked: Ping) -> None:
        now_ns, delivered = time.monotonic_ns(), self._counts.delivered
        pong = Pong(
            stamp=asked.stamp,
            users=len(self.connections),
            messages=delivered - connection.pinged_delivered,
            covered_ns=now_ns - connection.pinged_at_ns,
            queue=self.waiting,
        )
        connection.pinged_at_ns, connection.pinged_delivered = now_ns, delivered
        self._tell(connection, pong)

    @property
    def waiting(self) -> int:
        """Return how many frames wait in all queues together."""
        return sum(len(connection.queue) for connection in self.connections)
