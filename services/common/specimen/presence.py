"""Work that goes on only while the client is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


async def present(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], work: Coroutine[Any, Any, T]
) -> T:
    """Return what the work gives; when the client goes, end the work and raise ClientGone.

    ``receive`` is ASGI's, once the request's body has been read.
    """
    working = asyncio.ensure_future(work)
    going = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, going), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_gone = not working.done()
        for task in (going, working):
            task.cancel()
        # What was cancelled must have let go of what it held.
        await asyncio.wait((going, working))
    if is_gone:
        raise ClientGone
    return working.result()


async def _gone(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
