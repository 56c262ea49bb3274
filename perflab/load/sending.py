"""Bodies that do not pass at once: what the kernel did not take of a request, and long answers.

Past its head an answer with a length can only be counted and summed. All connections of a worker
read such bodies into one buffer, which is done with before the next read; where nobody wants more
than the length, the kernel lets the bytes go and nothing is copied (tcp(7), ``MSG_TRUNC``).
"""

from __future__ import annotations

import mmap
import os
import socket
import ssl

from perflab.load.response import ResponseReader

# A large body must not keep the others from their turn.
PER_TURN_BYTES = 1 << 20
TLS_PIECE_BYTES = 1 << 16
BUFFER_BYTES = 256 * 1024
# What the kernel may let go of at a time; as much as it queues for a connection by default.
PASSED_BYTES = 4 * 1024 * 1024


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


class Landing:
    """Where the long bodies of a worker arrive."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        # Nothing is ever written to it: it takes addresses, and no memory.
        self._nowhere = memoryview(mmap.mmap(-1, PASSED_BYTES))

    def receive(self, opened: socket.socket, reader: ResponseReader) -> int:
        """Read what has come of a long body; return how many bytes, 0 at the end of the stream.

        Raises
        ------
        BadResponse
            More came than the body's length.
        OSError
            As the socket raises it; ``BlockingIOError`` and the like mean later.
        """
        if reader.body is None and not isinstance(opened, ssl.SSLSocket):
            number = opened.recv_into(self._nowhere, PASSED_BYTES, socket.MSG_TRUNC)
            reader.count(number)
            return number
        number = opened.recv_into(self._buffer)
        if number:
            reader.take(self._buffer[:number])
        return number
