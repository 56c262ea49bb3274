"""A service with a database that answers GET; words on the command line plant why it is slow."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

PLANTED = set(sys.argv[1:])
ONE, MANY = "SELECT id FROM items WHERE id = %s", "SELECT id FROM items WHERE id = ANY(%s)"
OF_THREAD = threading.local()


def connection() -> psycopg2.extensions.connection:
    if "connection" in PLANTED or not hasattr(OF_THREAD, "connection"):
        OF_THREAD.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        OF_THREAD.connection.autocommit = True
    return OF_THREAD.connection


def items(numbers: list[int]) -> list[int]:
    with connection().cursor() as cursor:
        if "loop" not in PLANTED:
            cursor.execute(MANY, (numbers,))
            return [row[0] for row in cursor.fetchall()]
        found = []
        for number in numbers:
            cursor.execute(ONE, (number,))
            found.append(cursor.fetchone()[0])
        return found


def serialize(rows: list[int]) -> bytes:
    for _ in range(400 if "serializer" in PLANTED else 1):
        text = json.dumps(rows)
    return text.encode()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0 if "two-writes" in PLANTED else -1

    def do_GET(self) -> None:
        if "sleep" in PLANTED:
            time.sleep(0.01)
        body = serialize(items([*range(1, 21)]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if "fill" in PLANTED:
    connection().cursor().execute(
        "CREATE TABLE items (id int PRIMARY KEY);"
        "INSERT INTO items SELECT i FROM generate_series(1, 1000) i"
    )
else:
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
