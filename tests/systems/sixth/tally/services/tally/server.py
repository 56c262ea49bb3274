"""An HTTP server of the standard library that takes in bodies and counts them."""

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
    """GET returns counts and settings, POST takes in a body; ``/reset`` forgets all bodies."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    delay_s = 0.0
    proof = ""

    def do_GET(self) -> None:
        """Answer with the settings, the bodies taken in, or the digest of the secret."""
        answers = {
            "/settings": {"delay_ms": self.delay_s * 1e3},
            "/taken": {"taken": TAKEN},
            "/proof": {"sha256": self.proof},
        }
        self.answer(answers.get(self.path, {}))

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

    def answer(self, content: object) -> None:
        """Answer with JSON, in one write."""
        body = json.dumps(content).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True)
parser.add_argument("--delay-ms", type=float, required=True)
parser.add_argument("--secret-file", type=Path, required=True)
arguments = parser.parse_args()
Handler.delay_s = arguments.delay_ms / 1e3
Handler.proof = hashlib.sha256(arguments.secret_file.read_bytes()).hexdigest()
host, _, port = arguments.listen.rpartition(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
