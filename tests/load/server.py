"""A small server with known answers, run as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys

BODY = sys.argv[3].encode() if len(sys.argv) > 3 else b'{"label": 1}'
ONE_AT_A_TIME = asyncio.Lock()
ANSWERS = itertools.count()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    delay_s = float(sys.argv[1])
    mode = sys.argv[2]
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            async with ONE_AT_A_TIME if mode == "one" else contextlib.nullcontext():
                await asyncio.sleep(delay_s)
            if mode == "reset":
                writer.transport.abort()
                return
            failing = mode == "fail"
            if mode.startswith("fail_from:"):
                failing = next(ANSWERS) >= int(mode.removeprefix("fail_from:"))
            status = b"500 Oops" if failing else b"200 OK"
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Length: %d\r\nServer-Timing: app;dur=%d, x\r\n\r\n%s"
                % (status, len(BODY), delay_s * 1000, BODY)
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
