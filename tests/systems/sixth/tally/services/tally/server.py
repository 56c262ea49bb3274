"""An HTTP server of the standard library that takes in bodies and tells what it took."""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TAKEN: list[tuple[int, int]] = []
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """GET tells, POST takes; ``/reset`` forgets."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    delay_s = 0.0
    proof = ""

    def do_GET(self) -> None:
        """Tell the settings, what was taken, or the digest of the secret."""
        shown = {
            "/settings": {"delay_ms": self.delay_s * 1e3},
            "/taken": {"taken": TAKEN},
            "/proof": {"sha256": self.proof},
        }
        self.answer(shown.get(self.path, {}))

    def do_POST(self) -> None:
        """Take a body, or forget all of them."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/reset":
            TAKEN.clear()
            self.answer({})
            return
        time.sleep(self.delay_s)
        with LOCK:
            TAKEN.append((time.monotonic_ns(), len(body)))
        self.answer({"bytes": len(body), "zeros": body.count(0)})

    def answer(self, shown: object) -> None:
        """Answer with JSON, in one write."""
        body = json.dumps(shown).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True)
parser.add_argument("--delay-ms", type=float, required=True)
parser.add_argument("--secret-file", type=Path, required=True)
given = parser.parse_args()
Handler.delay_s = given.delay_ms / 1e3
Handler.proof = hashlib.sha256(given.secret_file.read_bytes()).hexdigest()
host, _, port = given.listen.rpartition(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
