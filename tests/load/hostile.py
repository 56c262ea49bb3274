"""A server that plays a script: bytes, pauses and ends, connection after connection."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import uvloop

from perflab.load.client import LeanClient
from perflab.load.outcome import ERRORS, Exchange
from perflab.load.prepared import Prepared
from perflab.load.targets import split
from perflab.load.workload import Request

End = Literal["close", "reset", "hang", "keep"]


@dataclass(frozen=True)
class Part:
    """Bytes to send after a pause."""

    data: bytes
    pause_s: float = 0.0


@dataclass(frozen=True)
class Script:
    """What a connection does: read a request (or not), send its parts, and end."""

    parts: tuple[Part, ...] = ()
    end: End = "close"
    reads: bool = True


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Hostile:
    """Plays one script per connection, the last one for all further connections.

    With ``end="keep"`` a connection plays its script again for its next request.
    """

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = list(scripts)
        self.connections = 0
        self.requests: list[bytes] = []
        self._server: asyncio.Server | None = None
        self._over = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._over.set()
        await asyncio.wait(self._serving, timeout=1) if self._serving else None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        try:
            while True:
                if script.reads:
                    self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                for part in script.parts:
                    if part.pause_s:
                        await asyncio.sleep(part.pause_s)
                    writer.write(part.data)
                    await writer.drain()
                if script.end != "keep":
                    break
            if script.end == "hang":
                await self._over.wait()
            if script.end == "reset":
                opened: Any = writer.get_extra_info("socket")
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


@dataclass
class Seen:
    """What the client made of its requests, and what the loop complained of."""

    outcomes: list[tuple[str, int, int]]
    exchanges: list[Exchange]
    complaints: list[dict[str, Any]]
    left_open: int

    @property
    def errors(self) -> list[str]:
        """Return the error class of each request."""
        return [error for error, _, _ in self.outcomes]


def on_uvloop(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine as a worker would, on uvloop."""
    return uvloop.run(_outer(work))


async def _outer(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()


async def send(
    url: str,
    count: int = 1,
    request: Request | None = None,
    together: bool = False,
    bound_s: float = 5.0,
    **client: Any,
) -> Seen:
    """Send requests one after another (or together); every one must end once, and in time."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    lean = LeanClient(loop, **{"timeout_s": 1.0, **client})
    prepared = Prepared(request or Request(), split(url)[0], client.get("connection", "keep_alive"))
    seen = Seen([], [], complaints, 0)
    over = asyncio.Event()

    def finished(exchange: Exchange) -> None:
        seen.outcomes.append((ERRORS[exchange.error], exchange.status, exchange.bytes))
        over.set()

    exchanges = [Exchange(prepared, number, finished) for number in range(count if together else 1)]
    try:
        async with asyncio.timeout(bound_s):
            for number in range(count):
                exchange = exchanges[number if together else 0]
                exchange.renew()
                exchange.planned_ns = exchange.started_ns = time.monotonic_ns()
                lean.submit(exchange)
                while not together and len(seen.outcomes) <= number:
                    over.clear()
                    await over.wait()
            while len(seen.outcomes) < count:
                over.clear()
                await over.wait()
    finally:
        seen.exchanges = exchanges
        await lean.close()
        seen.left_open = len(lean._open)
    await asyncio.sleep(0)
    return seen


async def play(scripts: Sequence[Script], count: int = 1, **options: Any) -> Seen:
    """Send requests to a hostile server."""
    async with Hostile(scripts) as url:
        return await send(url, count, **options)
