"""A server whose truth is known: each answer's delay is drawn from a given distribution, and it
notes on its own clock when each request came and when it was answered.

GET /record gives the notes as raw int64 pairs (CLOCK_MONOTONIC ns) and forgets
them. With --slots, requests queue first come, first served for that many slots, so the capacity
is slots / delay.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from array import array
from collections import deque
from typing import cast

import numpy as np
import uvloop

from perflab.host.processes import go_first
from perflab.load.workers.timer import Timer

clock = time.monotonic_ns
DRAWN = 1 << 16


def delays_ns(kind: str, delay_ms: float, seed: int, hang: tuple[float, float]) -> list[int]:
    """Return delays to use in turn; a share of them is another (``hang``: share, and ms)."""
    random = np.random.default_rng(seed)
    if kind == "constant":
        drawn = np.full(DRAWN, delay_ms)
    elif kind == "bimodal":
        drawn = np.where(random.random(DRAWN) < 0.95, delay_ms, 10 * delay_ms)
    elif kind == "heavy":
        drawn = np.minimum(delay_ms * (1 + random.pareto(1.8, DRAWN)), 200 * delay_ms)
    else:
        drawn = np.zeros(DRAWN)
    drawn = np.where(random.random(DRAWN) < hang[0], hang[1], drawn)
    return [round(value * 1e6) for value in drawn]


class Server:
    """What all connections share."""

    def __init__(self, given: argparse.Namespace, loop: asyncio.AbstractEventLoop) -> None:
        self.timer = Timer(loop)
        self.delays = delays_ns(
            given.kind, given.delay_ms, given.seed, (given.hang_share, given.hang_ms)
        )
        self.turn = 0
        self.notes = array("q")
        self.body = b"x" * given.bytes
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (given.bytes, self.body)
        self.free = given.slots or (1 << 30)
        self.queue: deque[tuple[Connection, int]] = deque()

    def arrive(self, connection: Connection, came_ns: int) -> None:
        """Serve a request, or let it queue."""
        if not self.free:
            self.queue.append((connection, came_ns))
            return
        self.free -= 1
        delay_ns = self.delays[self.turn % DRAWN]
        self.turn += 1
        if not delay_ns:
            self.finish(connection, came_ns)
        else:
            self.timer.at(clock() + delay_ns, lambda: self.finish(connection, came_ns))

    def finish(self, connection: Connection, came_ns: int) -> None:
        """Answer, note it, and take the next from the queue; who has left is noted all the same."""
        if not connection.transport.is_closing():
            connection.transport.write(self.answer)
        self.notes.extend((came_ns, clock()))
        self.free += 1
        if self.queue:
            self.arrive(*self.queue.popleft())


class Connection(asyncio.Protocol):
    """One connection; requests have no body."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports do not inherit from asyncio's.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take one whole request; the benchmarks' clients do not split or pipeline them."""
        if data.startswith(b"GET /record "):
            notes = self.server.notes.tobytes()
            self.server.notes = array("q")
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(notes))
            self.transport.write(notes)
            return
        self.server.arrive(self, clock())


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kind", default="none", choices=("none", "constant", "bimodal", "heavy"))
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--bytes", type=int, default=12)
    parser.add_argument("--hang-share", type=float, default=0.0)
    parser.add_argument("--hang-ms", type=float, default=0.0)
    parser.add_argument("--slots", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # Its delays are the truth of the benchmarks: nothing else on its core may add to them.
    go_first()
    loop = asyncio.get_running_loop()
    server = Server(given, loop)
    listening = await loop.create_server(
        lambda: Connection(server), "127.0.0.1", given.port, backlog=4096
    )
    await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
