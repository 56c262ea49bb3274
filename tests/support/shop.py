"""A service of a user's that keeps its rows in a store, and the program that fills it.

``DATABASE_URL`` says where; what tests ask is printed, and kept in the file ``NOTES``. ``serve``
notes how many rows it finds when it starts; each GET but that of ``/health`` adds one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit


class Postgres:
    """Rows of a table."""

    def __init__(self, url: str) -> None:
        import psycopg2

        self._connection = psycopg2.connect(url)
        self._connection.autocommit = True

    def _value(self, statement: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return int(cursor.fetchone()[0]) if cursor.description else 0

    def fill(self, rows: int) -> None:
        self._value("CREATE TABLE items (id serial PRIMARY KEY)")
        for _ in range(rows):
            self.add()

    def add(self) -> None:
        self._value("INSERT INTO items DEFAULT VALUES")

    def count(self) -> int:
        if not self._value("SELECT count(*) FROM pg_tables WHERE tablename = 'items'"):
            self._value("CREATE TABLE items (id serial PRIMARY KEY)")
        return self._value("SELECT count(*) FROM items")


class Redis:
    """Members of a list."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port or 0))
        self._stream = self._socket.makefile("rwb")
        assert self._ask(f"AUTH {address.password}") == "+OK"

    def _ask(self, command: str) -> str:
        self._stream.write(f"{command}\r\n".encode())
        self._stream.flush()
        return self._stream.readline().decode().strip()

    def fill(self, rows: int) -> None:
        for _ in range(rows):
            self.add()

    def add(self) -> None:
        self._ask("RPUSH items x")

    def count(self) -> int:
        return int(self._ask("LLEN items")[1:])


def note(text: str) -> None:
    print(text, flush=True)
    if os.environ["NOTES"]:
        with Path(os.environ["NOTES"]).open("a") as file:
            file.write(f"{os.environ['NAME']} {text}\n")


def serve(rows: Postgres | Redis, port: int) -> None:
    lock = Lock()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body go out together: else the body waits 40 ms for an acknowledgement.
        wbufsize = -1

        def do_GET(self) -> None:
            if self.path != "/health":
                with lock:
                    rows.add()
            # As a careless service might, it tells what nobody should see.
            body = os.environ["DATABASE_URL"].encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    note(f"found {rows.count()} at {os.environ['DATABASE_URL']}")
    ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()


def main() -> None:
    url, step, words = os.environ["DATABASE_URL"], sys.argv[1], sys.argv[2:]
    if step == "fail":
        print(f"no such table at {url}", flush=True)
        sys.exit(3)
    if step == "hang":
        beside = subprocess.Popen(["sleep", "300"], start_new_session=True)
        note(f"hangs {os.getpid()} {beside.pid}")
        time.sleep(300)
    store: Callable[[str], Postgres | Redis] = Redis if url.startswith("redis") else Postgres
    if step == "fill":
        store(url).fill(int(words[0]))
        note("filled")
    else:
        serve(store(url), int(words[0]))


if __name__ == "__main__":
    main()
