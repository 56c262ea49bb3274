"""A small HTTP service of the standard library, to be compared with a slower revision of itself."""

from __future__ import annotations

import argparse
import asyncio
import hashlib

BODY = b'{"hello": "world"}\n'


def answer(rounds: int) -> bytes:
    """Work for some rounds of SHA-256, and return the whole response."""
    digest = b"x"
    for _ in range(rounds):
        digest = hashlib.sha256(digest).digest()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
    return head.encode() + b"\r\n" + BODY


async def serve(port: int, rounds: int) -> None:
    """Answer every request on a connection until it is closed."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer(rounds))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=1000)
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.rounds))
