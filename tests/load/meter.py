"""A server that notes its requests by connection, and answers with bodies of any length."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise

from perflab.load.clients.client import Client, make_client
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.outcome import ERRORS
from perflab.load.clients.targets import split
from perflab.load.workers.drivers import ClosedDriver
from perflab.load.workers.timer import Timer
from perflab.load.workload import ClosedLoop, Workload
from tests.load.clients.hostile import read_request

PIECE = bytes(range(256)) * 256


class Meter:
    """Answers ``/N`` with N bytes of a known pattern; notes every connection and request."""

    def __init__(
        self, tls: ssl.SSLContext | None = None, flaw_at: int = -1, host: str = "127.0.0.1"
    ) -> None:
        self.connections: list[list[bytes]] = []
        self._host = host
        self._tls = tls
        self._flaw_at = flaw_at

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0.02)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection: list[bytes] = []
        self.connections.append(connection)
        try:
            while True:
                connection.append(await read_request(reader))
                await self._answer(int(connection[-1].split()[1][1:] or 0), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, size: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for place in range(0, size, len(PIECE)):
            piece = PIECE[: size - place]
            if place <= self._flaw_at < place + len(piece):
                flaw = self._flaw_at - place
                piece = piece[:flaw] + bytes([piece[flaw] ^ 1]) + piece[flaw + 1 :]
            writer.write(piece)
            await writer.drain()


def cut(whole: bytes, places: Iterable[int]) -> list[bytes]:
    """Return bytes in pieces, cut at places that may lie beyond their end."""
    edges = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[begin:end] for begin, end in pairwise(edges)]


def crc32_of(size: int) -> int:
    """Return the CRC-32 of the pattern."""
    crc32 = 0
    for place in range(0, size, len(PIECE)):
        crc32 = zlib.crc32(PIECE[: size - place], crc32)
    return crc32


async def closed_loop(
    client: Client,
    prepared: Prepared,
    users: int,
    requests: int,
    record: Callable[[Exchange], object],
) -> None:
    """Let users send so many requests in all, each after its answer; then close the client."""
    timer = Timer(asyncio.get_running_loop())
    arrivals = ClosedLoop(users=users, requests=requests)
    driver = ClosedDriver(
        arrivals, range(users), (0, requests), client.submit, prepared, timer, record
    )
    try:
        async with asyncio.timeout(20):
            await driver.run(time.monotonic_ns())
    finally:
        await client.close()
        timer.close()


async def drive(work: Workload, url: str, requests: int) -> list[str]:
    """Let one user send so many requests with a worker's own client; return error classes."""
    prepared = Prepared(work.request, split(url)[0], work.connections)
    client = make_client(work, prepared, 1, sticky=True)
    errors: list[str] = []
    await closed_loop(
        client, prepared, 1, requests, lambda exchange: errors.append(ERRORS[exchange.error])
    )
    return errors
