"""A tiny TCP proxy that counts PostgreSQL's round trips: one ReadyForQuery ends each."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

READY_FOR_QUERY = ord("Z")


class CountingProxy:
    """Forwards to a PostgreSQL server; ``round_trips`` counts all connections together.

    Source: PostgreSQL manual, Message Formats: a type byte, then a length that counts itself.
    """

    def __init__(self, upstream_port: int) -> None:
        self.round_trips = 0
        self._upstream = ("127.0.0.1", upstream_port)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> CountingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _forward(self, source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def _answer(self, source: socket.socket, to: socket.socket) -> None:
        pending = b""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                # The answer to a request for encryption is one byte alone, and no message.
                if pending or len(data) > 1:
                    pending = self._count(pending + data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def _count(self, stream: bytes) -> bytes:
        while len(stream) >= 5:
            end = 1 + int.from_bytes(stream[1:5], "big")
            if len(stream) < end:
                break
            if stream[0] == READY_FOR_QUERY:
                with self._lock:
                    self.round_trips += 1
            stream = stream[end:]
        return stream
