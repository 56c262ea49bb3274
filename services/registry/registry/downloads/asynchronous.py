"""Downloads through the async client, and answers that send the client to the store itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi.responses import RedirectResponse, Response

from registry.downloads.request import Download, streamed, whole
from registry.refusal import ClientGone
from registry.store.asynchronous import AsyncStore
from registry.store.metadata import Model
from registry.timing import clock

Result = TypeVar("Result")
LINK_VALID_S = 3600


class Asynchronous:
    """Waits for the store in the event loop."""

    def __init__(self, store: AsyncStore, body: str) -> None:
        self._store = store
        self._is_streamed = body == "streamed"

    async def answer(self, download: Download) -> Response:
        """Find and pass on a model."""
        with download.phases.phase("handler"):
            return await while_there(download, self._answer(download))

    async def _answer(self, download: Download) -> Response:
        with download.phases.phase("metadata"):
            model = await self._store.find(download.model_id, download.version)
        if not self._is_streamed:
            return whole(model, await self._load(model, download))
        chunks = self._chunks(model, download)
        with download.phases.phase("first_byte"):
            first = await anext(chunks, b"")
        return streamed(model, _after(first, chunks), download)

    async def _load(self, model: Model, download: Download) -> bytearray:
        data, at = memoryview(bytearray(model.size_bytes)), 0
        chunks = self._chunks(model, download)
        with download.phases.phase("first_byte"):
            chunk = await anext(chunks, b"")
        with download.phases.phase("get"):
            while chunk:
                data[at : at + len(chunk)] = chunk
                at += len(chunk)
                chunk = await anext(chunks, b"")
        return data.obj

    async def _chunks(self, model: Model, download: Download) -> AsyncIterator[bytes]:
        async with self._store.opened(model) as stream:
            began_ns, left = clock(), model.size_bytes
            async for chunk in self._store.chunks(stream, model.size_bytes):
                download.counts.read(len(chunk))
                left -= len(chunk)
                # Before it is passed on: with the last one the client may go.
                if not left:
                    download.counts.got(began_ns)
                yield chunk


class Redirecting:
    """Looks a model up, and signs an address at which the client gets it without the service."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def answer(self, download: Download) -> Response:
        """Send the client to the store."""
        with download.phases.phase("handler"):
            return await while_there(download, self._answer(download))

    async def _answer(self, download: Download) -> Response:
        with download.phases.phase("metadata"):
            model = await self._store.find(download.model_id, download.version)
        with download.phases.phase("sign"):
            address = await self._store.link_to(model, LINK_VALID_S)
        return RedirectResponse(address, status_code=307, headers={"Cache-Control": "no-store"})


async def while_there(download: Download, work: Coroutine[Any, Any, Result]) -> Result:
    """Do the work unless the client goes."""
    task = asyncio.ensure_future(work)
    download.presence.takes(task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        if download.presence.gone:
            raise ClientGone from None
        task.cancel()
        raise


async def _after(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for chunk in chunks:
            yield chunk
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]
