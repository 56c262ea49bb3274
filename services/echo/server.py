"""An HTTP server as lean as Python allows: a known body after known work and a known delay.

It speaks HTTP/1.1, and HTTP/2 on connections that begin with its preface. ``Server-Timing: app`` is
what work and delay really took, by its own clock. GET /stats tells how many requests it has
answered; GET /settings how it was started.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import signal
import time
from functools import partial
from typing import cast

import httptools
import uvloop
from http2 import PREFACE, Give, Streams

clock = time.monotonic_ns


class Echo:
    """What all connections share."""

    def __init__(self, options: argparse.Namespace, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = {key: value for key, value in vars(options).items() if key != "listen"}
        self.loop = loop
        self.delay_s = options.delay_ms / 1e3
        self.work = options.work
        self.answered = 0
        self.body = b"x" * options.body_bytes

    def page(self, path: bytes) -> bytes | None:
        """Return a page about the server itself, or None for a path that is answered with load."""
        if path == b"/health":
            return b"{}"
        if path == b"/settings":
            return json.dumps(self.settings).encode()
        if path == b"/stats":
            return json.dumps({"answered": self.answered}).encode()
        return None

    def answer(self, path: bytes, give: Give) -> None:
        """Give a page, or load: the body after work and delay, and what both took."""
        page = self.page(path)
        if page is not None:
            give(page, [])
            return
        came_ns = clock()
        if self.work:
            # So many rounds of SHA-256, in C: twice as many take twice as long.
            hashlib.pbkdf2_hmac("sha256", b"perflab", b"echo", self.work)
        if self.delay_s:
            self.loop.call_later(self.delay_s, self._load, came_ns, give)
        else:
            self._load(came_ns, give)

    def _load(self, came_ns: int, give: Give) -> None:
        self.answered += 1
        took_ms = (clock() - came_ns) / 1e6
        give(self.body, [(b"server-timing", b"app;dur=%.4f" % took_ms)])


class Connection(asyncio.Protocol):
    """One connection; pipelined requests are answered in their order."""

    def __init__(self, echo: Echo) -> None:
        self._echo = echo
        self._parser = httptools.HttpRequestParser(self)
        self._path = b"/"
        self._is_first = True
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget the transport."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Parse; what is not HTTP is refused."""
        if self._is_first and data.startswith(PREFACE[:4]) and self._transport is not None:
            streams = Streams(self._echo.answer, self._transport)
            self._transport.set_protocol(streams)
            streams.data_received(data)
            return
        self._is_first = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                self._transport.close()

    def on_url(self, url: bytes) -> None:
        """Keep the path."""
        self._path = url.partition(b"?")[0]

    def on_message_complete(self) -> None:
        """Answer, now or after the delay."""
        keep = self._parser.should_keep_alive()
        self._echo.answer(self._path, partial(self._write, keep))

    def _write(self, keep: bool, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        if self._transport is None:
            return
        fields = [*headers, *([] if keep else [(b"Connection", b"close")])]
        lines = b"".join(b"%s: %s\r\n" % field for field in fields)
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), lines, body)
        )
        if not keep:
            self._transport.close()


async def serve(options: argparse.Namespace) -> None:
    """Run until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    echo = Echo(options, loop)
    host, _, port = options.listen.rpartition(":")
    server = await loop.create_server(lambda: Connection(echo), host, int(port), backlog=4096)
    await ended.wait()
    server.close()


def main() -> None:
    """Read the settings and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, help="host:port")
    parser.add_argument("--body-bytes", type=int, default=100)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--work", type=int, default=0, help="rounds of SHA-256 per request")
    parser.add_argument("--name", default="", help="tells copies of the server apart")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
