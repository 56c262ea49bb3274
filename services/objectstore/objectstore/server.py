"""Moto's S3 and DynamoDB behind a server that keeps connections open.

Moto's own server closes each connection after one answer, so that a client's pool of connections
would have nothing to keep.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cheroot.wsgi import Server

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]
# Objects of up to this size stay in memory, where all who read one share it.
IN_MEMORY_BYTES = 256 * 1024 * 1024
SLICE_BYTES = 256 * 1024
# So many requests are answered at a time; one that is idle between requests needs no thread.
THREADS = 256
# A reader behind a slow link may take its time.
PATIENCE_S = 600


def main() -> None:
    """Serve until SIGTERM."""
    os.environ["MOTO_S3_DEFAULT_KEY_BUFFER_SIZE"] = str(IN_MEMORY_BYTES)
    # It reads its environment, and takes a second.
    from moto.server import DomainDispatcherApplication, create_backend_app

    share_values()
    server = Server(
        (os.environ["OBJECTSTORE_HOST"], int(os.environ["OBJECTSTORE_PORT"])),
        sliced(DomainDispatcherApplication(create_backend_app)),
        numthreads=THREADS,
        request_queue_size=2048,
        timeout=PATIENCE_S,
        shutdown_timeout=1,
    )
    # Left alone it keeps 10 connections, and closes every further one after its answer.
    server.keep_alive_conn_limit = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        server.start()
    finally:
        server.stop()


def share_values() -> None:
    """Let all who read an object have the same bytes: moto reads a copy for each.

    A BytesIO gives its value away without a copy, until it is written to again.
    """
    from moto.s3.models import FakeKey

    read_copy, write = FakeKey.value.fget, FakeKey.value.fset

    def shared(key: Any) -> bytes:
        kept = key._value_buffer._file
        if not isinstance(kept, io.BytesIO):
            return bytes(read_copy(key))
        with key.lock:
            return kept.getvalue()

    FakeKey.value = property(shared, write)


def sliced(app: WsgiApp) -> WsgiApp:
    """Return an application that gives a large body in parts, and so copies no whole."""
    return lambda environ, start_response: _in_slices(app(environ, start_response))


def _in_slices(body: Iterable[bytes]) -> Iterator[bytes]:
    try:
        for part in body:
            view = memoryview(part)
            for at in range(0, len(part), SLICE_BYTES):
                yield bytes(view[at : at + SLICE_BYTES])
    finally:
        if hasattr(body, "close"):
            body.close()


if __name__ == "__main__":
    main()
