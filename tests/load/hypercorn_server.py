"""A server that speaks HTTP/2 (and 1.1) by hypercorn; a process of its own.

``hypercorn_server.py PORT [CERTIFICATE KEY ALPN]``
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = scope["http_version"].encode()
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


config = Config()
config.bind = [f"127.0.0.1:{sys.argv[1]}"]
config.accesslog = config.errorlog = None
if len(sys.argv) > 2:
    config.certfile, config.keyfile = sys.argv[2:4]
    config.alpn_protocols = [sys.argv[4]]
asyncio.run(serve(app, config))
