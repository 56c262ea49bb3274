"""A WebSocket server as a process of its own: it prints its port, echoes, and refuses /refuse.

To ``/push`` it sends the present instant (ns) twenty times a second. To ``/mute`` as well, for half
a second; then it reads and says nothing, as if a firewall dropped every packet.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from http import HTTPStatus
from itertools import count

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


async def handle(socket: ServerConnection) -> None:
    path = socket.request.path if socket.request else ""
    with contextlib.suppress(ConnectionClosed):
        for tick in count() if path in ("/push", "/mute") else ():
            if path == "/mute" and tick == 10:
                socket.transport.pause_reading()
                await asyncio.Event().wait()
            await socket.send(str(time.monotonic_ns()))
            await asyncio.sleep(0.05)
        async for message in socket:
            await socket.send(message)


def decide(socket: ServerConnection, request: Request) -> Response | None:
    if request.path == "/refuse":
        return socket.respond(HTTPStatus.FORBIDDEN, "no")
    return None


async def main() -> None:
    compression = "deflate" if "deflate" in sys.argv else None
    async with serve(
        handle,
        "127.0.0.1",
        0,
        compression=compression,
        process_request=decide,
        ping_interval=0.2,
        ping_timeout=60,
    ) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
