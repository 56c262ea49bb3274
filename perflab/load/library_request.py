"""A request as other HTTP libraries take it: its headers and its body."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from perflab.load.payload import FileBody, OpenFiles, content_of, length_of, usual_type
from perflab.load.sending import TLS_PIECE_BYTES, FileChanged
from perflab.load.workload import Request


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers to send, with a body's length and type where it has one."""
    # Bodies are counted and judged as they come: what is packed may be gigabytes unpacked.
    default = {"Accept-Encoding": "identity"}
    if length := length_of(request.body):
        # With a length, neither library falls back on chunks.
        default |= {"Content-Type": usual_type(request.body), "Content-Length": str(length)}
    given = {name.lower() for name in request.headers}
    kept = {name: value for name, value in default.items() if name.lower() not in given}
    return {**kept, **request.headers}


def body_of(request: Request, files: OpenFiles) -> bytes | AsyncIterator[bytes] | None:
    """Return the body to send, a file piece by piece; None where there is none.

    Its pieces raise FileChanged where the file ends before its time.
    """
    body = request.body
    if isinstance(body, FileBody) and body.size_bytes:
        return _pieces(files.descriptor(body), body.size_bytes)
    return content_of(body) or None


async def _pieces(descriptor: int, size: int) -> AsyncIterator[bytes]:
    place = 0
    while place < size:
        piece = os.pread(descriptor, min(TLS_PIECE_BYTES, size - place), place)
        if not piece:
            raise FileChanged(f"the body's file ended after {place} of {size} bytes")
        place += len(piece)
        yield piece
