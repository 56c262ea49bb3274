"""A server of HTTP/2 that ends connections politely, refuses requests, or takes one at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings

ANSWER_S = 0.002
GOAWAY = 7


@dataclass
class Seen:
    """What arrived at all connections: by body how often it was answered, and more."""

    answered: Counter[bytes] = field(default_factory=Counter)
    order: list[bytes] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    peers: list[Peer] = field(default_factory=list)
    most_at_once: int = 0
    given_up: int = 0

    def begun(self) -> Counter[bytes]:
        """Return how often each body was begun, by what the connections told of that."""
        return Counter(
            body
            for each in self.peers
            for stream, body in each.taken.items()
            if stream <= each.last
        )


@dataclass
class Peer(asyncio.Protocol):
    """One connection; ``every`` requests it does what ``manner`` says.

    ``graceful``: it names the newest request as the last that it answers, answers all, and closes.
    ``below``: it names one two requests before, and answers neither of the two. ``angry``: the
    same, with ENHANCE_YOUR_CALM. ``refused``: it refuses that request alone. ``one``: it never
    takes more than one at a time. ``silent``: the same, and it never answers the first.
    ``miscounted``: every so many answers one says another length than it has.
    """

    manner: str
    every: int
    seen: Seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        if self.manner in ("one", "silent"):
            values = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
            self.h2.local_settings = Settings(client=False, initial_values=values)
        self.h2.initiate_connection()
        self.bodies: dict[int, bytes] = {}
        self.heads: dict[int, dict[str, str]] = {}
        self.last = 1 << 31
        self.taken: dict[int, bytes] = {}
        self.highest_answered = 0
        self.count = 0
        self.seen.peers.append(self)
        self.flush()

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            match event:
                case RequestReceived():
                    self.bodies[event.stream_id] = b""
                    self.heads[event.stream_id] = dict(event.headers)
                    at_once = max(self.seen.most_at_once, len(self.bodies))
                    self.seen.most_at_once = at_once
                case DataReceived():
                    self.bodies[event.stream_id] += event.data
                    size = event.flow_controlled_length
                    self.h2.acknowledge_received_data(size, event.stream_id)
                case StreamReset():
                    self.bodies.pop(event.stream_id, None)
                    self.seen.given_up += 1
                case StreamEnded():
                    self.take(event.stream_id)
        self.flush()

    def take(self, stream: int) -> None:
        self.count += 1
        self.seen.order.append(self.bodies[stream][:8])
        self.seen.sizes.add(len(self.bodies[stream]))
        if self.manner == "silent" and len(self.seen.order) == 1:
            return
        if self.count % self.every == 0 and self.manner == "refused":
            del self.bodies[stream]
            self.h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            return
        self.taken[stream] = self.bodies[stream][:8]
        if self.count == self.every and self.manner in ("graceful", "below", "angry"):
            # What is answered already was begun.
            below = stream if self.manner == "graceful" else stream - 4
            self.last = max(below, self.highest_answered)
            self.leave(ErrorCodes.ENHANCE_YOUR_CALM if self.manner == "angry" else 0)
        asyncio.get_running_loop().call_later(ANSWER_S, self.answer, stream)

    def leave(self, code: int) -> None:
        # By hand: h2 would not answer after its own GOAWAY.
        self.flush()
        content = self.last.to_bytes(4, "big") + code.to_bytes(4, "big")
        self.transport.write(b"\0\0\x08" + bytes([GOAWAY]) + bytes(5) + content)
        asyncio.get_running_loop().call_later(10 * ANSWER_S, self.transport.close)

    def answer(self, stream: int) -> None:
        if stream <= self.last and stream in self.bodies:
            body = self.bodies.pop(stream)
            self.highest_answered = max(stream, self.highest_answered)
            self.seen.answered[body[:8]] += 1
            head = [(":status", "200"), ("server-timing", "db;dur=2")]
            if self.manner == "miscounted" and stream % (2 * self.every) == 1:
                head.append(("content-length", "9"))
            self.h2.send_headers(stream, head)
            self.h2.send_data(stream, body[:8], end_stream=True)
            self.flush()


@asynccontextmanager
async def peer(
    manner: str, every: int = 50, kind: type[Peer] = Peer
) -> AsyncIterator[tuple[str, Seen]]:
    """Serve; yield address and what was seen."""
    seen = Seen()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(manner, every, seen), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
