"""An HTTP server of a test, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Method, path and body to status and text; None to say nothing.
Answer = Callable[[str, str, bytes], tuple[int, str] | None]


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """Serve while the block runs; give the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if (told := answer(self.command, self.path, body)) is not None:
                self.send_response(told[0])
                self.send_header("Content-Length", str(len(told[1].encode())))
                self.end_headers()
                self.wfile.write(told[1].encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_port
        server.shutdown()
