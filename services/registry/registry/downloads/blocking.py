"""Downloads through boto3: the same blocking work, wherever it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial

from fastapi.responses import Response

from registry.downloads.lines import Line
from registry.downloads.request import Download, streamed, whole
from registry.refusal import ClientGone, Refused
from registry.store.blocking import BlockingStore, Body
from registry.store.metadata import Model
from registry.timing import clock


class Blocking:
    """Finds, opens and reads models; each call holds the thread that makes it."""

    def __init__(self, store: BlockingStore, line: Line, body: str) -> None:
        self.store, self.line = store, line
        self._is_streamed = body == "streamed"

    async def answer(self, download: Download) -> Response:
        """Do the work in the line's threads, or in the event loop where it has none."""
        with download.phases.phase("handler"):
            if not self._is_streamed:
                work = partial(self.load, download)
                return whole(*await self.line.run(work, download.phases))
            model, body = await self.line.run(partial(self.open, download), download.phases)
            return streamed(model, self._chunks(body, download), download)

    def answer_here(self, download: Download) -> Response:
        """Do the work in the thread that calls."""
        with download.phases.phase("handler"):
            if not self._is_streamed:
                return whole(*self.load(download))
            model, body = self.open(download)
            return streamed(model, _chunks_here(body, download), download)

    def open(self, download: Download) -> tuple[Model, Body]:
        """Look the model up, and ask for its file."""
        with download.borrowing():
            with download.phases.phase("metadata"):
                model = self.store.find(download.model_id, download.version)
            with download.phases.phase("first_byte"):
                body = self.store.open(model)
            try:
                # Asked again: it may have gone after the file's connection was had.
                download.presence.takes(body.close)
            except ClientGone:
                body.close()
                raise
        return model, body

    def load(self, download: Download) -> tuple[Model, bytearray]:
        """Read a whole model."""
        model, body = self.open(download)
        data = bytearray(model.size_bytes)
        with download.phases.phase("get"):
            fill(memoryview(data), body, download)
        return model, data

    async def _chunks(self, body: Body, download: Download) -> AsyncIterator[bytes]:
        work = partial(_next, body, download, clock())
        try:
            while body.left:
                yield await self.line.run(work, download.phases)
        finally:
            body.close()


def fill(view: memoryview, body: Body, download: Download) -> None:
    """Read a body into its place."""
    began_ns, at = clock(), 0
    try:
        while body.left:
            chunk = _next(body, download, began_ns)
            view[at : at + len(chunk)] = chunk
            at += len(chunk)
    finally:
        body.close()


def _chunks_here(body: Body, download: Download) -> Iterator[bytes]:
    began_ns = clock()
    try:
        while body.left:
            yield _next(body, download, began_ns)
    except Refused as error:
        download.counts.refuse(error.code)
        raise ClientGone from None
    finally:
        body.close()


def _next(body: Body, download: Download, began_ns: int) -> bytes:
    """Read a chunk, and count it before it is passed on: with the last one the client may go."""
    with download.borrowing():
        chunk = body.chunk()
    download.counts.read(len(chunk))
    if not body.left:
        download.counts.got(began_ns)
    return chunk
