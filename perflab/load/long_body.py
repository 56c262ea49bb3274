"""Long bodies: where they arrive, so that none is kept and the parser does not see them.

Past its head a body with a length can only be counted and summed. All connections of a worker read
such bodies into one buffer, which is done with before the next read; where nobody wants more than
the length, the kernel lets the bytes go and nothing is copied (tcp(7), ``MSG_TRUNC``).
"""

from __future__ import annotations

import mmap
import socket
import ssl

from perflab.load.response import ResponseReader

BUFFER_BYTES = 256 * 1024
# What the kernel may let go of at a time; as much as it queues for a connection by default.
PASSED_BYTES = 4 * 1024 * 1024


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
