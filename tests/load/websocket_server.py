"""A WebSocket server as a process of its own: it prints its port, echoes, and refuses /refuse."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


async def handle(socket: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for message in socket:
            await socket.send(message)


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
