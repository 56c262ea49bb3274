"""A server that plays a script: bytes, pauses and ends, connection after connection."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import uvloop

from perflab.load.clients.client import LeanClient
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.outcome import ERRORS
from perflab.load.clients.targets import split
from perflab.load.workload import Connections, Request

End = Literal["close", "cut", "reset", "hang", "keep"]
ENDLESS = 1 << 60


@dataclass(frozen=True)
class Part:
    """Bytes to send ``times`` times, each after a pause."""

    data: bytes
    pause_s: float = 0.0
    times: int = 1


@dataclass(frozen=True)
class Script:
    """The course of a connection: it reads a request (or not), sends its parts, and ends.

    ``routes`` holds answers by path; other paths get the parts. With
    ``upgrades`` the parts follow the handshake that opens a WebSocket with these extensions.
    """

    parts: tuple[Part, ...] = ()
    end: End = "close"
    reads: bool = True
    routes: Mapping[bytes, bytes] = field(default_factory=dict)
    upgrades: str | None = None


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Hostile:
    """Plays one script per connection, the last one for all further connections.

    ``end="cut"`` is ``close`` without the close_notify of TLS.
    With ``end="keep"`` a connection plays its script again for its next request. A script by path
    comes before those by connection: one server can be many peers.
    """

    def __init__(
        self,
        scripts: Sequence[Script],
        by_path: Mapping[bytes, Script] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._scripts = list(scripts)
        self._by_path = by_path or {}
        self.connections = 0
        self.requests: list[bytes] = []
        self._server: asyncio.Server | None = None
        self._playing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, backlog=512, ssl=self._tls
        )
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio complains when tasks that it made are cancelled.
        task = asyncio.create_task(self._play(reader, writer))
        self._playing.add(task)
        task.add_done_callback(self._playing.discard)

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        try:
            while True:
                request = await read_request(reader) if script.reads else b""
                if request:
                    self.requests.append(request)
                    script = self._by_path.get(path_of(request), script)
                if script.upgrades is not None:
                    writer.write(accepting(request, script.upgrades))
                await perform(script, path_of(request), writer)
                if script.end != "keep":
                    break
            if script.end == "hang":
                await asyncio.sleep(3600)
            if script.end == "reset":
                opened: Any = writer.get_extra_info("socket")
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if script.end in ("cut", "reset"):
                writer.transport.abort()
        except (OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # uvloop raises RuntimeError where it finds a transport closed
        finally:
            writer.close()


def path_of(request: bytes) -> bytes:
    """Return the path of a request; empty without one."""
    return request.split(b" ")[1] if request else b""


async def perform(script: Script, path: bytes, writer: asyncio.StreamWriter) -> None:
    """Send the parts of a script, or the answer to a path."""
    routed = script.routes.get(path)
    for part in script.parts if routed is None else [Part(routed)]:
        for _ in range(part.times):
            if part.pause_s:
                await asyncio.sleep(part.pause_s)
            writer.write(part.data)
            await writer.drain()


def accepting(head: bytes, extensions: str = "") -> bytes:
    """Return the answer that opens a WebSocket (RFC 6455, 4.2.2)."""
    key = next(
        line.split(b":")[1].strip()
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"sec-websocket-key")
    )
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    extra = b"Sec-WebSocket-Extensions: %s\r\n" % extensions.encode() if extensions else b""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %s\r\n%s\r\n" % (accept, extra)
    )


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Return head and body of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    lengths = [line.split(b":")[1] for line in lines if line.startswith(b"content-length:")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@dataclass
class ClientReport:
    """The outcomes of a client's requests, and complaints of the event loop."""

    outcomes: list[tuple[str, int, int]]
    exchanges: list[Exchange]
    complaints: list[dict[str, Any]]
    left_open: int
    capped: int = 0

    @property
    def errors(self) -> list[str]:
        """Return the error class of each request."""
        return [error for error, _, _ in self.outcomes]


def check(report: ClientReport, count: int) -> None:
    """Require one outcome each, nothing left open, and no complaint of the loop."""
    assert len(report.outcomes) == count
    assert set(report.errors) <= set(ERRORS)
    assert report.complaints == []
    assert report.left_open == 0


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def on_uvloop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine as a worker would, on uvloop; one loop serves all tests."""
    return _runner().run(work())


async def send(
    url: str,
    count: int = 1,
    request: Request | None = None,
    together: bool = False,
    pause_s: float = 0.0,
    abort_after_s: float = -1,
    **client: Any,
) -> ClientReport:
    """Send requests one after another (or together); every one must end once, and in time."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    reuse, most = client.pop("connection", "keep_alive"), client.pop("connections", 0)
    life = Connections(reuse=reuse, most=most)
    lean = LeanClient(loop, life, **{"timeout_s": 1.0, **client})
    prepared = Prepared(request or Request(), split(url)[0], life)
    report = ClientReport([], [], complaints, 0)
    over = asyncio.Event()

    def finished(exchange: Exchange) -> None:
        report.outcomes.append((ERRORS[exchange.error], exchange.status, exchange.bytes))
        over.set()

    async def ended(number: int) -> None:
        while len(report.outcomes) < number:
            over.clear()
            await over.wait()

    report.exchanges = [
        Exchange(prepared, user, finished) for user in range(count if together else 1)
    ]
    if abort_after_s >= 0:
        loop.call_later(abort_after_s, lean.abort)
    try:
        async with asyncio.timeout(5):
            for number in range(count):
                exchange = report.exchanges[number if together else 0]
                exchange.renew()
                exchange.planned_ns = exchange.started_ns = time.monotonic_ns()
                lean.submit(exchange)
                # Its end must not come before submit has returned.
                assert len(report.outcomes) <= number
                if not together:
                    await ended(number + 1)
                    await asyncio.sleep(pause_s)
            await ended(count)
    finally:
        report.capped = lean.capped
        await lean.close()
        report.left_open = len(lean._open)
    await asyncio.sleep(0)
    return report


async def sent_to(hostile: Hostile, count: int = 1, **options: Any) -> ClientReport:
    """Send requests to a hostile server."""
    async with hostile as url:
        return await send(url, count, **options)


async def play(scripts: Sequence[Script], count: int = 1, **options: Any) -> ClientReport:
    """Send requests to a hostile server that plays these scripts."""
    return await sent_to(Hostile(scripts), count, **options)


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@contextmanager
def beside(hostile: Hostile) -> Iterator[str]:
    """Play in a thread, for a load that another process sends; yield the address."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    try:
        yield run(hostile.__aenter__()).rstrip("/")
    finally:
        run(hostile.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
