"""A WebSocket server as a process of its own: echo and fan-out.

Prints its port. The path says what it does: /echo, /flood?n=&bytes= (messages that begin
with the server's own instant in ns), /refuse.
"""

from __future__ import annotations

import asyncio
import sys
import time
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


async def handle(socket: ServerConnection) -> None:
    assert socket.request is not None
    parts = urlsplit(socket.request.path)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    try:
        if parts.path == "/echo":
            async for message in socket:
                await socket.send(message)
        elif parts.path == "/flood":
            padding = "x" * max(0, int(query.get("bytes", 100)) - 20)
            for _ in range(int(query["n"])):
                await socket.send(f"{time.monotonic_ns():020d}{padding}")
    except ConnectionClosed:
        pass


def decide(socket: ServerConnection, request: Request) -> Response | None:
    if request.path == "/refuse":
        return socket.respond(HTTPStatus.FORBIDDEN, "no")
    return None


async def main() -> None:
    compression = "deflate" if "deflate" in sys.argv else None
    async with serve(
        handle, "127.0.0.1", 0, compression=compression, process_request=decide, ping_interval=0.2
    ) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
