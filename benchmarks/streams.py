"""WebSocket clients against a server that stamps each message with its own clock.

Users share one client core; the server, on the other core, sends every user a message at a steady
pace, 10,000/s in all by default. Delay: the instant the client noted minus the server's stamp
(one CLOCK_MONOTONIC for both). CPU: the client process per message. The peer is aiohttp. Deflated
messages come at a tenth of the pace, from a server that can deflate; plain ones from picows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import random
import statistics
import sys
import time
from array import array
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import bench
import numpy as np
import picows
import uvloop
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from perflab.load.websocket import connect

Result = tuple[float, float, float, int]


class Ears:
    """Notes when a message came and what the server stamped on it."""

    def __init__(self, notes: array[int]) -> None:
        self._notes = notes

    def message(self, data: bytes, at_ns: int) -> None:
        """Keep both instants."""
        self._notes.extend((int(data[:20]), at_ns))

    def closed(self, kind: str, code: int) -> None:
        """Nothing to do."""


async def ours(url: str, users: int, notes: array[int], deflate: bool) -> Callable[[], Any]:
    """Open perflab's connections; returns what closes them."""
    opened = [await connect(url, Ears(notes), deflate=deflate) for _ in range(users)]

    async def close() -> None:
        await asyncio.gather(*(each.close() for each in opened))

    return close


async def peer(url: str, users: int, notes: array[int], deflate: bool) -> Callable[[], Any]:
    """Open aiohttp's connections, a task each."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    sockets = [
        await session.ws_connect(url, compress=15 if deflate else 0, autoclose=True)
        for _ in range(users)
    ]

    async def read(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            notes.extend((int(message.data[:20]), time.monotonic_ns()))

    tasks = [asyncio.create_task(read(socket)) for socket in sockets]

    async def close() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()

    return close


CLIENTS: dict[str, tuple[Callable[..., Awaitable[Any]], bool]] = {
    "perflab": (ours, False),
    "perflab, deflate": (ours, True),
    "aiohttp": (peer, False),
    "aiohttp, deflate": (peer, True),
}


def measure(name: str, url: str, given: argparse.Namespace, out: Any) -> None:
    """Run one client in this (child) process and put its figures."""
    os.sched_setaffinity(0, {bench.cores()[1]})
    opening, deflate = CLIENTS[name]

    async def work() -> None:
        notes = array("q")
        close = await opening(url, given.users, notes, deflate)
        await asyncio.sleep(0.5)
        notes_from, cpu = len(notes), time.process_time()
        await asyncio.sleep(given.seconds)
        cpu, notes_to = time.process_time() - cpu, len(notes)
        await close()
        pairs = np.array(notes[notes_from:notes_to]).reshape(-1, 2)
        delays = (pairs[:, 1] - pairs[:, 0]) / 1e6
        p50, p99 = np.percentile(delays, (50, 99))
        out.put((float(p50), float(p99), cpu / len(pairs) * 1e6, len(pairs)))

    uvloop.run(work())


def stamped(size: int) -> bytes:
    """Return a message that begins with the instant of its sending."""
    return f"{time.monotonic_ns():020d}".ljust(size, "x").encode()


async def pace(send: Callable[[], None], per_s: float) -> None:
    """Call ``send`` at a steady pace, until it fails."""
    due = time.monotonic() + random.random() / per_s
    while True:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        send()
        due += 1 / per_s


async def serve_plain(per_s: float, size: int, port: Any) -> None:
    """Send every connection messages, through picows."""

    class Flood(picows.WSListener):
        def on_ws_connected(self, transport: picows.WSTransport) -> None:
            send = partial(self.send, transport)
            self.task = asyncio.get_running_loop().create_task(pace(send, per_s))

        def send(self, transport: picows.WSTransport) -> None:
            transport.send(picows.WSMsgType.TEXT, stamped(size))

        def on_ws_disconnected(self, _transport: picows.WSTransport) -> None:
            self.task.cancel()

    listening = await picows.ws_create_server(lambda _: Flood(), "127.0.0.1", 0)
    port.put(listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


async def serve_deflated(per_s: float, size: int, port: Any) -> None:
    """Send every connection messages, through websockets."""

    async def flood(socket: ServerConnection) -> None:
        due = time.monotonic() + random.random() / per_s
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await socket.send(stamped(size), text=True)
                due += 1 / per_s

    async with listen(flood, "127.0.0.1", 0, compression="deflate", ping_interval=None) as server:
        port.put(next(iter(server.sockets)).getsockname()[1])
        await server.serve_forever()


def server(given: argparse.Namespace, deflate: bool, port: Any) -> None:
    """Run the server in this (child) process."""
    os.sched_setaffinity(0, {bench.cores()[0]})
    per_s = given.rate / given.users
    if deflate:
        uvloop.run(serve_deflated(per_s / 10, given.bytes, port))
    else:
        uvloop.run(serve_plain(per_s, given.bytes, port))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=250)
    parser.add_argument("--rate", type=float, default=10_000, help="messages per second in all")
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    seen: dict[str, list[Result]] = {name: [] for name in CLIENTS}
    spawn = multiprocessing.get_context("spawn")
    for number in range(given.rounds):
        for name in random.sample(list(CLIENTS), len(CLIENTS)):
            port, out = spawn.Queue(), spawn.Queue()
            serving = spawn.Process(target=server, args=(given, CLIENTS[name][1], port))
            serving.start()
            url = f"ws://127.0.0.1:{port.get()}/"
            client = spawn.Process(target=measure, args=(name, url, given, out))
            client.start()
            seen[name].append(out.get())
            client.join()
            serving.kill()
            serving.join()
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    print(
        f"{'client':20}{'delay p50':>10}{'p99 ms':>9}{'CPU us':>8}{'messages/s':>12}   of perflab"
    )
    base = statistics.median(cost for _, _, cost, _ in seen["perflab"])
    for name, results in seen.items():
        p50, p99, cost, count = (statistics.median(column) for column in zip(*results, strict=True))
        print(
            f"{name:20}{p50:>10.3f}{p99:>9.3f}{cost:>8.1f}{count / given.seconds:>12.0f}"
            f"{cost / base:>12.2f} x"
        )


if __name__ == "__main__":
    main()
