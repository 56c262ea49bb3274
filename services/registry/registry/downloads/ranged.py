"""Downloads in parts that are read side by side, each over a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from itertools import pairwise

from fastapi.responses import Response

from registry.downloads.blocking import fill
from registry.downloads.lines import Line
from registry.downloads.request import Download, streamed, whole
from registry.refusal import ClientGone
from registry.store.blocking import BlockingStore
from registry.store.metadata import Model

Part = tuple[int, int]


class Ranged:
    """Reads each model in parts, each in a thread of the line."""

    def __init__(self, store: BlockingStore, line: Line, body: str, parts: int) -> None:
        self._store, self._line, self._parts = store, line, parts
        self._is_streamed = body == "streamed"

    async def answer(self, download: Download) -> Response:
        """Find a model and read its parts; streamed, each is sent once those before it are."""
        with download.phases.phase("handler"):
            model = await self._line.run(partial(self._find, download), download.phases)
            data = bytearray(model.size_bytes)
            reading = self._begin(model, data, download)
            if self._is_streamed:
                return streamed(model, _in_order(reading, data), download)
            with download.phases.phase("get"):
                await _all(list(reading.values()))
            return whole(model, data)

    def _find(self, download: Download) -> Model:
        with download.borrowing(), download.phases.phase("metadata"):
            return self._store.find(download.model_id, download.version)

    def _begin(
        self, model: Model, data: bytearray, download: Download
    ) -> dict[Part, asyncio.Task[None]]:
        view, begun = memoryview(data), {}
        for first, end in parts_of(model.size_bytes, self._parts):
            work = partial(self._read, model, view[first:end], (first, end), download)
            begun[first, end] = asyncio.create_task(self._line.run(work, download.phases))
        return begun

    def _read(self, model: Model, view: memoryview, part: Part, download: Download) -> None:
        with download.borrowing():
            body = self._store.open(model, *part)
            try:
                download.presence.takes(body.close)
            except ClientGone:
                body.close()
                raise
        fill(view, body, download)


def parts_of(size_bytes: int, parts: int) -> list[Part]:
    """Return where each part begins and ends; empty ones are left out."""
    ends = [size_bytes * number // parts for number in range(parts + 1)]
    return [(first, end) for first, end in pairwise(ends) if end > first]


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for all parts; when one fails the others are called off."""
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _in_order(
    reading: dict[Part, asyncio.Task[None]], data: bytearray
) -> AsyncIterator[bytes]:
    view = memoryview(data)
    try:
        for (first, end), task in reading.items():
            await task
            yield bytes(view[first:end])
    finally:
        for task in reading.values():
            task.cancel()
        await asyncio.gather(*reading.values(), return_exceptions=True)
