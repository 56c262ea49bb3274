"""Packed rows of a worker on their way to disk while the load runs."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Literal

import numpy as np

BUFFERS_WAITING = 64
FLUSH_BYTES = 1 << 18


class Spool:
    """Writes rows to a file in a thread of its own, so that no disk delays a request.

    The file exists from the first rows on. The number of waiting buffers is bounded. After an error
    no more rows are written, and ``close`` raises it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._few = bytearray()
        self._queue: queue.Queue[bytearray | None] = queue.Queue(BUFFERS_WAITING)
        self._error: OSError | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the file before its first rows; raise OSError."""
        self._file = self._path.open("wb", buffering=0)
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def add(self, rows: bytes) -> None:
        """Collect a few rows until they fill a buffer."""
        self._few += rows
        if len(self._few) > FLUSH_BYTES:
            self.hand_over()

    def hand_over(self) -> None:
        """Have the collected rows written, so that others can read them."""
        full, self._few = self._few, bytearray()
        if self._error is not None or not full:
            return
        try:
            if self._thread is None:
                self.start()
        except OSError as error:
            self._error = error
        else:
            self._queue.put(full)

    def close(self) -> None:
        """Write the remaining rows; raise OSError where the disk did not take all of them."""
        self.hand_over()
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


def rows_in(path: Path, dtype: np.dtype[np.void], mode: Literal["r", "r+"] = "r") -> np.ndarray:
    """Return the whole rows in a file, mapped from disk; none where there is no file."""
    number = path.stat().st_size // dtype.itemsize if path.exists() else 0
    if not number:
        return np.empty(0, dtype=dtype)
    # A full disk takes a part of a row.
    return np.memmap(path, dtype=dtype, mode=mode, shape=(number,))


def of_requests(packed: np.ndarray, worker: int, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns for each packed row's request, which is numbered by order of end."""
    request_rows = rows[packed["request"]]
    return {
        "worker": np.full(len(packed), worker, dtype=np.int16),
        "user": np.array(request_rows["user"]),
        "request": packed["request"].astype(np.int64),
        "planned_ns": np.array(request_rows["planned_ns"]),
    }
