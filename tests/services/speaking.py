"""A client that says exactly what it is told, byte by byte, and reads answers strictly."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Reply:
    """One answer; ``headers`` by names in small letters."""

    status: int
    headers: dict[str, str]
    body: Any


class Speaker:
    """One connection; what it reads beyond an answer is kept for the next."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_S)
        self._read = b""

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reply(self) -> Reply:
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        length = int(headers.get("content-length", 0))
        while len(self._read) < length:
            self._more()
        body, self._read = self._read[:length], self._read[length:]
        return Reply(int(first.split()[1]), headers, json.loads(body) if body else None)

    def is_closed(self) -> bool:
        """Wait for the server's end of the connection; false where it sends more instead."""
        return not self._read and self.socket.recv(1) == b""

    def _more(self) -> None:
        data = self.socket.recv(65536)
        assert data, f"closed after {self._read!r}"
        self._read += data


@contextlib.contextmanager
def speaking(port: int, data: bytes = b"") -> Iterator[Speaker]:
    speaker = Speaker(port)
    try:
        speaker.say(data)
        yield speaker
    finally:
        speaker.socket.close()


def batch(client: str = "a", *values: float) -> bytes:
    metrics = [{"name": "cpu", "value": value} for value in values]
    return json.dumps({"client": client, "metrics": metrics}).encode()


def post(body: bytes, *lines: str, path: str = "/metrics") -> bytes:
    """Return a request with a length, and further header lines."""
    head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *lines, "", ""]).encode()
