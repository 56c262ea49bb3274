"""Telling the naive client what to do, and a server that answers in each of the bad ways."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from running import Answer, call, wait_until

HOST = "127.0.0.1"
SLOW_S = 0.05
METRICS = json.dumps({"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]})


def workload(**changes: object) -> dict[str, object]:
    """Return a workload that is allowed; a change to None leaves a field out."""
    asked: dict[str, object] = {
        "path": "/", "clients": 2, "rate": 0, "duration_s": 20, "connection": "per_request",
        "timeout_ms": 5000, **changes,
    }  # fmt: skip
    return {name: value for name, value in asked.items() if value is not None}


def ask(port: int, **changes: object) -> Answer:
    """Ask for a workload."""
    return call(port, "POST", "/workload", workload(**changes))


def look(port: int, path: str) -> Any:
    """Return what is known of a run."""
    answer = call(port, "GET", path)
    assert answer.status == 200, answer
    return answer.body


def run(port: int, **changes: object) -> Any:
    """Have a workload done; return its results, whose counts must add up."""
    asked = ask(port, **changes)
    assert asked.status == 202, asked
    path = asked.body["results"]
    wait_until(lambda: look(port, path)["status"] != "running", timeout_s=60)
    known = look(port, path)
    assert known["status"] == "completed", known
    results = known["results"]
    ended = results["answered"] + results["cancelled"] + sum(results["errors"].values())
    assert results["attempted"] == ended
    return results


def _answer(status: int, body: bytes, *lines: str) -> bytes:
    head = [f"HTTP/1.1 {status} Some", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def _whole(connection: socket.socket) -> None:
    connection.sendall(_answer(200, b"hello", "content-length: 5"))


def _slow(connection: socket.socket) -> None:
    time.sleep(SLOW_S)
    _whole(connection)


def _in_pieces(connection: socket.socket) -> None:
    for byte in _answer(200, b"hello", "Content-Length: 5"):
        connection.sendall(bytes([byte]))


def _without_length(connection: socket.socket) -> None:
    connection.sendall(_answer(200, b"hello"))


def _busy(connection: socket.socket) -> None:
    connection.sendall(_answer(503, b"", "Content-Length: 0"))


def _silent(connection: socket.socket) -> None:
    # Until the client gives up: its end is what is then read.
    connection.recv(1)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _short(connection: socket.socket) -> None:
    connection.sendall(_answer(200, b"he", "Content-Length: 5"))


def _no_http(connection: socket.socket) -> None:
    connection.sendall(b"good day\r\n\r\n")


SERVED: dict[str, Callable[[socket.socket], None]] = {
    "/": _whole,
    "/slow": _slow,
    "/in_pieces": _in_pieces,
    "/without_length": _without_length,
    "/busy": _busy,
    "/silent": _silent,
    "/reset": _reset,
    "/closed": lambda _: None,
    "/short": _short,
    "/no_http": _no_http,
}


class OddServer:
    """Answers one request per connection, in the way that its path names, and closes it."""

    def __init__(self) -> None:
        self.asked = 0
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            said = b""
            while b"\r\n\r\n" not in said:
                if not (piece := connection.recv(4096)):
                    return
                said += piece
            self.asked += 1
            SERVED[said.split()[1].decode()](connection)


@contextmanager
def odd_server() -> Iterator[OddServer]:
    """Serve in odd ways until the end of the block."""
    server = OddServer()
    try:
        yield server
    finally:
        server.stop()
