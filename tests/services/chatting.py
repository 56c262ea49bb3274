"""Users of the chat service, on the client of the ``websockets`` package."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Iterable
from functools import cache
from typing import Any

from running import Answer, Service, artifacts_of, call, use_packages_of
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

PASSWORD = "correct horse"
CODECS = ("json", "orjson", "msgspec", "protobuf", "msgpack")
IMPLEMENTATIONS = ("websockets", "websockets-sansio")
# Everyone hears everyone, and logins cost nothing.
EASY = {"subscriber_share": 1, "login_hash": "none", "accounts": 20}
PATIENCE_S = 20.0


@cache
def compiled_codecs() -> Any:
    """Return the service's module of codecs, with chat.proto compiled as the backend does it."""
    use_packages_of("chat")
    folder = str(artifacts_of("chat"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from chat import codecs

    return codecs


def log_in(service: Service, user: str, password: str = PASSWORD) -> Answer:
    return call(service.port, "POST", "/login", {"user": user, "password": password})


def address(port: int, token: str) -> str:
    return f"ws://127.0.0.1:{port}/ws?token={token}"


class User:
    """A connected user who speaks in envelopes."""

    def __init__(self, socket: ClientConnection, coder: Any, name: str, login: Any) -> None:
        self.socket = socket
        self.name = name
        self.token = login["token"]
        self.channels = login["channels"]
        self.coder = coder

    async def say(self, envelope: Any) -> None:
        await self.socket.send(self.coder.encode(envelope))

    async def hear_frame(self) -> str | bytes:
        return await asyncio.wait_for(self.socket.recv(), PATIENCE_S)

    async def hear(self) -> Any:
        return self.coder.decode(await self.hear_frame())

    async def hear_all(self, kind: type, number: int) -> list[Any]:
        """Return the next envelopes of a kind; others are passed over."""
        heard: list[Any] = []
        while len(heard) < number:
            envelope = await self.hear()
            if isinstance(envelope, kind):
                heard.append(envelope)
        return heard

    async def closed(self) -> tuple[int, str]:
        """Read to the end; return the close frame's code and reason."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await self.socket.recv()
            await self.socket.wait_closed()
        return self.socket.close_code or 0, self.socket.close_reason or ""


async def join(service: Service, number: int, **options: Any) -> User:
    """Log a user of the pool in over HTTP, and connect."""
    name = f"user{number}"
    answer = await asyncio.to_thread(log_in, service, name)
    assert answer.status == 200, answer
    socket = await connect(address(service.port, answer.body["token"]), **options)
    coder = compiled_codecs().CODERS[service.launch.settings["codec"]]["envelope"]
    return User(socket, coder, name, answer.body)


async def join_all(service: Service, numbers: Iterable[int], **options: Any) -> list[User]:
    return [await join(service, number, **options) for number in numbers]


async def part(*users: User) -> None:
    await asyncio.gather(*(user.socket.close() for user in users))


async def until(true: Any) -> None:
    """Wait for a condition that is asked for over HTTP, without holding up the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(true):
            await asyncio.sleep(0.02)


def run(scene: Coroutine[Any, Any, Any]) -> Any:
    """Play a scene; it may take no longer than a minute."""

    async def timed() -> Any:
        async with asyncio.timeout(60):
            return await scene

    return asyncio.run(timed())
