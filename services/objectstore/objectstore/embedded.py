"""Moto's S3 and DynamoDB behind a server that keeps connections open.

Moto's own server closes each connection after one answer, so that a client's pool of connections
would have nothing to keep.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from cheroot.wsgi import Server

from objectstore.signatures import Signed, WsgiApp

# Objects of up to this size stay in memory, where all who read one share it.
IN_MEMORY_BYTES = 256 * 1024 * 1024
SLICE_BYTES = 256 * 1024
# So many requests are answered at a time; one that is idle between requests needs no thread.
THREADS = 256
# A reader behind a slow link may take its time.
PATIENCE_S = 600


class Embedded:
    """A server in threads of this process."""

    name = "moto"

    def __init__(self, host: str, port: int, user: str, secret: str) -> None:
        os.environ["MOTO_S3_DEFAULT_KEY_BUFFER_SIZE"] = str(IN_MEMORY_BYTES)
        # It reads its environment, and takes a second.
        from moto.server import DomainDispatcherApplication, create_backend_app

        share_values()
        application = Signed(DomainDispatcherApplication(create_backend_app), user, secret)
        self._server = Server(
            (host, port),
            Sliced(application),
            numthreads=THREADS,
            request_queue_size=2048,
            timeout=PATIENCE_S,
            shutdown_timeout=1,
        )
        # Left alone it keeps 10, and tells every further connection that this was its last answer:
        # a client with a larger pool would have nothing to keep.
        self._server.keep_alive_conn_limit = None
        self._server.prepare()
        threading.Thread(target=self._server.serve, daemon=True).start()

    def is_ready(self) -> bool:
        """Tell whether it can be asked."""
        return bool(self._server.ready)

    def ended(self) -> str:
        """Return why it is no longer there, or an empty string."""
        return ""

    def pids(self) -> list[int]:
        """Return the processes whose memory and time are its own."""
        return [os.getpid()]

    def close(self) -> None:
        """End it."""
        self._server.stop()


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


class Sliced:
    """WSGI middleware that gives a large body in parts, and so without a copy of the whole."""

    def __init__(self, app: WsgiApp) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer as the application does."""
        return _in_slices(self._app(environ, start_response))


def _in_slices(body: Iterable[bytes]) -> Iterator[bytes]:
    try:
        for part in body:
            view = memoryview(part)
            for at in range(0, len(part), SLICE_BYTES):
                yield bytes(view[at : at + SLICE_BYTES])
    finally:
        if hasattr(body, "close"):
            body.close()
