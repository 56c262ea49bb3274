"""A pre-forking server: ``forking_server.py PORT preload|each`` answers with 64 bytes of a table.

With ``preload`` the parent loads the table, and its workers share it; with ``each`` every worker
loads one of its own.
"""

from __future__ import annotations

import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

WORKERS, TABLE_BYTES = 4, 40_000_000
table = b""


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one piece.
    wbufsize = -1

    def do_GET(self) -> None:
        body = table[:64]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def loaded() -> bytes:
    return b"x" * TABLE_BYTES


def work(listening: socket.socket) -> None:
    global table
    table = table or loaded()
    server = HTTPServer(listening.getsockname(), Answer, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.serve_forever()


def main() -> None:
    global table
    port, how = int(sys.argv[1]), sys.argv[2]
    if how == "preload":
        table = loaded()
    listening = socket.create_server(("127.0.0.1", port), backlog=64)
    for _ in range(WORKERS):
        if os.fork() == 0:
            work(listening)
    os.wait()


if __name__ == "__main__":
    main()
