"""Raw rows on their way to disk while a load runs."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import IO

BUFFERS_WAITING = 64
FLUSH_BYTES = 1 << 16


class Spool:
    """Writes buffers to a file in a thread of its own, so that no disk delays a request."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb", buffering=0)
        self._queue: queue.Queue[bytes | memoryview | None] = queue.Queue(BUFFERS_WAITING)
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, data: bytes | memoryview) -> None:
        """Hand over a buffer that is not changed any more.

        Raises
        ------
        OSError
            An earlier buffer could not be written (a full disk, say).
        """
        if self._error is not None:
            raise self._error
        if len(data):
            self._queue.put(data)

    def close(self) -> None:
        """Write what is left; raises like :meth:`put`."""
        self._queue.put(None)
        self._thread.join()
        self._file.close()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (data := self._queue.get()) is not None:
            if self._error is not None:
                continue
            try:
                view = memoryview(data)
                while view:
                    view = view[self._file.write(view) :]
            except OSError as error:
                self._error = error


class RareSpool:
    """Rows that most loads have none of: the file is there only if there is a row.

    What waits for the disk is bounded like any spool's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spool: Spool | None = None
        self._buffer = bytearray()

    def put(self, data: bytes) -> None:
        """Take rows; raises like :meth:`Spool.put`."""
        self._buffer += data
        if len(self._buffer) > FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._spool is None:
            self._spool = Spool(self._path)
        full, self._buffer = self._buffer, bytearray()
        self._spool.put(memoryview(full))

    def close(self) -> None:
        """Write everything; raises OSError when the disk did not take it."""
        if self._buffer:
            self._flush()
        if self._spool is not None:
            self._spool.close()
