"""A server whose POSTs add rows to a store that outlives it: ``growing_store.py PORT FILE``.

Every request reads all rows, so that each is slower than the one before.
"""

from __future__ import annotations

import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

ROWS_OF_A_POST = 5_000


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one piece.
    wbufsize = -1
    store: sqlite3.Connection

    def do_GET(self) -> None:
        (total,) = self.store.execute("SELECT sum(length(text)) > 0 FROM notes").fetchone()
        body = f"{total}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        rows = [("a note",)] * ROWS_OF_A_POST
        self.store.executemany("INSERT INTO notes VALUES (?)", rows)
        self.store.commit()
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    Answer.store = sqlite3.connect(sys.argv[2], isolation_level="DEFERRED")
    Answer.store.execute("PRAGMA synchronous = OFF")
    Answer.store.execute("CREATE TABLE IF NOT EXISTS notes (text)")
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()


if __name__ == "__main__":
    main()
