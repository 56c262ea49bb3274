"""Raw rows on their way to disk while a load runs, and back from there."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import numpy as np

BUFFERS_WAITING = 64
FLUSH_BYTES = 1 << 16


class Spool:
    """Writes rows to a file in a thread of its own, so that no disk delays a request.

    The file is there from the first rows on. What waits for the disk is bounded.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._few = bytearray()
        self._queue: queue.Queue[bytes | bytearray | memoryview | None] = queue.Queue(
            BUFFERS_WAITING
        )
        self._error: OSError | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the file, for who cannot wait for that later; raises OSError."""
        self._file = self._path.open("wb", buffering=0)
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def add(self, rows: bytes) -> None:
        """Take a few rows, which wait until they are many; raises like :meth:`put`."""
        self._few += rows
        if len(self._few) > FLUSH_BYTES:
            self._hand_over()

    def _hand_over(self) -> None:
        full, self._few = self._few, bytearray()
        self.put(full)

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Hand over a buffer that is not changed any more.

        Raises
        ------
        OSError
            An earlier buffer could not be written (a full disk, say).
        """
        if self._error is not None:
            raise self._error
        if not len(data):
            return
        if self._thread is None:
            self.start()
        self._queue.put(data)

    def close(self) -> None:
        """Write what is left; raises like :meth:`put`."""
        if self._error is None:
            self._hand_over()
        if self._thread is not None:
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


def rows_in(path: Path, dtype: np.dtype[np.void]) -> np.ndarray:
    """Return the rows in a file, mapped from disk; none where there is no file."""
    if not path.exists() or not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def of_requests(found: np.ndarray, worker: int, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns that say which requests some rows belong to, by their member ``request``.

    ``request`` is the number of the request in the order in which the worker's requests ended.
    """
    own = rows[found["request"]]
    return {
        "worker": np.full(len(found), worker, dtype=np.int16),
        "user": np.array(own["user"]),
        "request": found["request"].astype(np.int64),
        "planned_ns": np.array(own["planned_ns"]),
    }
