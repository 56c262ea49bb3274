"""What a handler knows of one download, and the answers that it can give."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from registry.counts import Counts
from registry.downloads.presence import KEY as PRESENCE
from registry.downloads.presence import Presence
from registry.refusal import ClientGone, Refused
from registry.store.metadata import Model, check_names
from registry.store.pools import borrower
from registry.timing import KEY as PHASES
from registry.timing import Phases

ZIP = "application/zip"


@dataclass(frozen=True)
class Download:
    """One request for a model."""

    model_id: str
    version: str
    phases: Phases
    presence: Presence
    counts: Counts

    @contextmanager
    def borrowing(self) -> Iterator[None]:
        """Let connections that are taken within be cut when the client goes."""
        token = borrower.set(self.presence)
        try:
            yield
        finally:
            borrower.reset(token)


def download_of(request: Request, model_id: str, version: str) -> Download:
    """Return what a request asks for; raise BadName for what no model can be called."""
    check_names(model_id, version)
    scope = request.scope
    return Download(model_id, version, scope[PHASES], scope[PRESENCE], request.app.state.counts)


def whole(model: Model, data: Any) -> Response:
    """Return an answer of all bytes at once."""
    return Response(memoryview(data), headers=headers(model), media_type=ZIP)


def streamed(model: Model, chunks: Any, download: Download) -> StreamingResponse:
    """Return an answer of chunks; its length is told first, so that a short one is seen as such."""
    length = {"Content-Length": str(model.size_bytes)}
    if hasattr(chunks, "__aiter__"):
        chunks = _broken_off_in_order(chunks, download)
    return StreamingResponse(chunks, headers=headers(model) | length, media_type=ZIP)


async def _broken_off_in_order(
    chunks: AsyncIterator[bytes], download: Download
) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    except Refused as error:
        # The status has been sent: all that can be done is to end the connection too early.
        download.counts.refuse(error.code)
        raise ClientGone from None


def headers(model: Model) -> dict[str, str]:
    """Return the headers of a model's file; its digest is that of RFC 9530."""
    digest = base64.b64encode(bytes.fromhex(model.sha256)).decode()
    return {
        "Repr-Digest": f"sha-256=:{digest}:",
        "Content-Disposition": 'attachment; filename="model.zip"',
        "Cache-Control": "no-store",
    }
