"""The two ends of a link under test: an upstream whose behaviour is set, and its clients."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from running import Service, call

Serve = Callable[[socket.socket], None]
AS_STARTED = {"round_trip_ms": 0, "bytes_per_s": "unlimited", "shared_bytes_per_s": "unlimited"}


class Upstream:
    """A TCP server whose behaviour is set per test."""

    def __init__(self) -> None:
        self.serve: Serve = echo
        self.accepted: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.accepted.append(connection)
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.serve(connection)

    def close(self) -> None:
        for end in (*self.accepted, self._listener):
            end.close()


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()


def change(link: Service, **settings: float | str) -> None:
    answer = call(link.control_port, "PUT", "/settings", settings)
    assert (answer.status, {**answer.body, **settings}) == (200, answer.body)


@contextlib.contextmanager
def connected(link: Service) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", link.port), timeout=10) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while data := connection.recv(65536):
        parts.append(data)
    return b"".join(parts)


def send_until_blocked(client: socket.socket) -> int:
    """Send until the other side takes no more; return the bytes taken."""
    sent = 0
    while sent < 128 * 1024 * 1024:
        try:
            sent += client.send(b"z" * 65536)
        except TimeoutError:
            return sent
    raise AssertionError(f"{sent} bytes were taken, and no end")
