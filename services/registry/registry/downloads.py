"""``GET /performance/{model_id}/{version}/model.zip``: a handler per way to wait for the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from specimen.refusal import Refused
from specimen.timing import KEY, Phases

from registry.counts import BrokenOff, Counts
from registry.lines import Line, Ticket
from registry.metadata import Model
from registry.settings import Settings
from registry.stores import AsyncStore, BlockingStore, Body

PATH = "/performance/{model_id}/{version}/model.zip"
ZIP = "application/zip"
LINK_VALID_S = 3600
# Of a model that is read in ranges.
PARTS = 4


@dataclass(frozen=True)
class Download:
    """One request for a model."""

    model_id: str
    version: str
    phases: Phases
    counts: Counts


class Blocking:
    """Finds, opens and reads models through boto3; each call holds the thread that makes it."""

    def __init__(self, store: BlockingStore, line: Line, settings: Settings) -> None:
        self._store, self._line = store, line
        self._is_streamed = settings.body == "streamed"

    async def answer(self, download: Download) -> Response:
        """Do the work in the line's threads, or in the event loop where it has none."""
        with download.phases.phase("handler"):
            if not self._is_streamed:
                return whole(await self._line.run(partial(self.load, download), download.phases))
            work = partial(self.open, download)
            model, body = await self._line.run(work, download.phases)
            return streamed(model, self._chunks(body, download))

    def answer_here(self, download: Download) -> Response:
        """Do the work in the thread that calls."""
        with download.phases.phase("handler"):
            return whole(self.load(download))

    def open(self, download: Download) -> tuple[Model, Body]:
        """Look the model up, and ask for its file."""
        with download.phases.phase("metadata"):
            model = self._store.find(download.model_id, download.version)
        with download.phases.phase("first_byte"):
            return model, self._store.open(model)

    def load(self, download: Download) -> bytearray:
        """Read a whole model."""
        model, body = self.open(download)
        data = bytearray(model.size_bytes)
        with download.phases.phase("get"):
            fill(memoryview(data), body, download)
        return data

    async def _chunks(self, body: Body, download: Download) -> AsyncIterator[bytes]:
        try:
            while body.left:
                yield await self._line.run(partial(_next, body, download), download.phases)
        except Refused as error:
            # The answer has begun: all that can be done is to end it too early.
            download.counts.refuse(error.code)
            raise BrokenOff from None
        finally:
            body.close()


class Ranged:
    """Reads each model in parts side by side, each over a connection and in a thread of its own."""

    def __init__(self, store: BlockingStore, line: Line) -> None:
        self._store, self._line = store, line

    async def answer(self, download: Download) -> Response:
        """Find a model and read its parts."""
        with download.phases.phase("handler"):
            model = await self._line.run(partial(self._find, download), download.phases)
            data = bytearray(model.size_bytes)
            with download.phases.phase("get"):
                await asyncio.gather(*self._reading(model, memoryview(data), download))
            return whole(data)

    def _find(self, download: Download) -> Model:
        with download.phases.phase("metadata"):
            return self._store.find(download.model_id, download.version)

    def _reading(self, model: Model, view: memoryview, download: Download) -> Iterator[Any]:
        ends = [model.size_bytes * number // PARTS for number in range(PARTS + 1)]
        for first, end in pairwise(ends):
            if end > first:
                work = partial(self._read, model, view[first:end], first, end, download)
                yield self._line.run(work, download.phases)

    def _read(
        self, model: Model, view: memoryview, first: int, end: int, download: Download
    ) -> None:
        fill(view, self._store.open(model, first, end), download)


async def read_here(store: AsyncStore, download: Download) -> Response:
    """Find and read a model; the event loop waits for the store."""
    phases = download.phases
    with phases.phase("handler"):
        with phases.phase("metadata"):
            model = await store.find(download.model_id, download.version)
        chunks = store.chunks(model)
        with phases.phase("first_byte"):
            chunk = await anext(chunks, b"")
        data, at = bytearray(model.size_bytes), 0
        with phases.phase("get"):
            while chunk:
                data[at : at + len(chunk)] = chunk
                at += len(chunk)
                download.counts.add(bytes_read=len(chunk))
                chunk = await anext(chunks, b"")
        return whole(data)


async def redirect(store: AsyncStore, download: Download) -> Response:
    """Find a model, and sign an address at which the client gets it without the service."""
    with download.phases.phase("handler"):
        with download.phases.phase("metadata"):
            model = await store.find(download.model_id, download.version)
        with download.phases.phase("sign"):
            address = await store.link_to(model, LINK_VALID_S)
        return RedirectResponse(address, status_code=307, headers={"Cache-Control": "no-store"})


def handler_of(settings: Settings, store: Any, line: Line) -> Callable[[Download], Any]:
    """Return what answers a download, by the settings."""
    if settings.handler == "async":
        return partial(read_here, store)
    if settings.handler == "redirect":
        return partial(redirect, store)
    if settings.handler == "ranged":
        return Ranged(store, line).answer
    blocking = Blocking(store, line, settings)
    return blocking.answer_here if settings.handler == "threads" else blocking.answer


def add_to(app: FastAPI, handler: str) -> None:
    """Add the endpoint, which finds its parts when the application has started."""
    app.get(PATH)(in_thread if handler == "threads" else in_loop)


async def in_loop(model_id: str, version: str, request: Request) -> Response:
    """Answer with a model; whether this blocks the event loop is up to the handler."""
    return await request.app.state.handler(download_of(request, model_id, version))


async def queue(model_id: str, version: str, request: Request) -> Ticket[Response]:
    """Take note of a request that is about to wait for one of FastAPI's threads."""
    wanted, state = download_of(request, model_id, version), request.app.state
    return Ticket(partial(state.handler, wanted), wanted.counts, wanted.phases)


def in_thread(ticket: Annotated[Ticket[Response], Depends(queue)]) -> Response:
    """Answer with a model; FastAPI runs a plain ``def`` in a thread of its own pool."""
    return ticket()


def download_of(request: Request, model_id: str, version: str) -> Download:
    """Return what a request asks for."""
    return Download(model_id, version, request.scope[KEY], request.app.state.counts)


def fill(view: memoryview, body: Body, download: Download) -> None:
    """Read a body into its place."""
    at = 0
    try:
        while body.left:
            chunk = _next(body, download)
            view[at : at + len(chunk)] = chunk
            at += len(chunk)
    finally:
        body.close()


def _next(body: Body, download: Download) -> bytes:
    chunk = body.chunk()
    download.counts.add(bytes_read=len(chunk))
    return chunk


def whole(data: bytearray) -> Response:
    """Return an answer of all bytes at once."""
    return Response(memoryview(data), media_type=ZIP)


def streamed(model: Model, chunks: Any) -> StreamingResponse:
    """Return an answer of chunks; its length is told first, so that a short one is seen as such."""
    length = {"Content-Length": str(model.size_bytes)}
    return StreamingResponse(chunks, headers=length, media_type=ZIP)
