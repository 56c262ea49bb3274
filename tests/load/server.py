"""A small server with known answers, as a process of its own.

Its words are the delay of an answer in s and, if given, the number of answers before it fails, or
``one``: then it answers one request at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys

BODY = b'{"label": 1, "token": 1}'
DELAY_S, OTHER = float(sys.argv[1]), "".join(sys.argv[2:])
GOOD = int(OTHER) if OTHER.isdigit() else sys.maxsize
TURN = asyncio.Lock() if OTHER == "one" else contextlib.nullcontext()
ANSWERS = itertools.count()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            async with TURN:
                await asyncio.sleep(DELAY_S)
            status = b"200 OK" if next(ANSWERS) < GOOD else b"500 Oops"
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Length: %d\r\nServer-Timing: app;dur=%d, x\r\n\r\n%s"
                % (status, len(BODY), DELAY_S * 1000, BODY)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
