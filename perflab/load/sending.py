"""What the kernel did not take at once of a request: the rest of its bytes, then a file."""

from __future__ import annotations

import os
import socket
import ssl

# A large body must not keep the others from their turn.
PER_TURN_BYTES = 1 << 20
TLS_PIECE_BYTES = 1 << 16


class FileChanged(OSError):
    """The file ended before the body's length: it was changed while it was sent."""


class Rest:
    """The part of a request that is still to be sent; a file is never held in memory."""

    def __init__(self, data: memoryview, descriptor: int = -1, size: int = 0) -> None:
        self._data = data
        self._descriptor = descriptor
        self._size = size
        self._place = 0

    def send(self, opened: socket.socket) -> bool:
        """Send what the kernel takes now; return whether that was all.

        Raises
        ------
        FileChanged
            The file is shorter than it was.
        OSError
            As the socket raises it; ``BlockingIOError`` and the like mean later.
        """
        if not self._data and self._place < self._size:
            if not isinstance(opened, ssl.SSLSocket):
                return self._send_file(opened.fileno())
            self._data = self._piece()
        if self._data:
            self._data = self._data[opened.send(self._data) :]
        return not self._data and self._place == self._size

    def _send_file(self, out: int) -> bool:
        wanted = min(PER_TURN_BYTES, self._size - self._place)
        self._moved(os.sendfile(out, self._descriptor, self._place, wanted))
        return self._place == self._size

    def _piece(self) -> memoryview:
        wanted = min(TLS_PIECE_BYTES, self._size - self._place)
        piece = os.pread(self._descriptor, wanted, self._place)
        self._moved(len(piece))
        return memoryview(piece)

    def _moved(self, number: int) -> None:
        if not number:
            raise FileChanged(f"the body's file ended after {self._place} of {self._size} bytes")
        self._place += number
