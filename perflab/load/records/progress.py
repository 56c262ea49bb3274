"""Bytes over time within one request: a bounded number of points, spread over its body.

Points are reads of the client: when bytes were read, and how many of the body had come by then. The
first and the last are always kept; between them the first of every step of the body's length. The
step is a fraction of that length where the head tells it; when the points are used up, the step is
doubled and what is too many dropped. So the error of a waterfall drawn from them is one step,
however long the body is and whatever its length was said to be.
"""

from __future__ import annotations

import queue
import struct
import threading
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

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


POINT = np.dtype([("at_ns", "<i8"), ("bytes", "<i8"), ("request", "<u4")])
PACK = struct.Struct("<qqI")
FILE = "progress.rows"


class Progress:
    """The points of one request under way: ``most`` of them, which is at least 2."""

    __slots__ = ("_last", "_most", "_next", "_step", "at_ns", "sizes")

    def __init__(self, most: int) -> None:
        # The last one has a place of its own.
        self._most = most - 1
        self._step = 1
        self._next = 0
        self._last = (0, 0)
        self.at_ns = array("q")
        self.sizes = array("q")

    def expect(self, length: int) -> None:
        """Spread the points over a body of a known length."""
        self._step = max(1, -(-length // self._most))

    def note(self, at_ns: int, size: int) -> None:
        """Note that so many bytes of the body had come at an instant."""
        self._last = (at_ns, size)
        if size < self._next and self.at_ns:
            return
        if len(self.at_ns) == self._most:
            self._thin()
            if size < self._next:
                return
        self.at_ns.append(at_ns)
        self.sizes.append(size)
        self._next = (size // self._step + 1) * self._step

    def _thin(self) -> None:
        """Keep the first point of every step, with steps so long that there is room again."""
        if self._most == 1:
            self._next = 1 << 62
            return
        while len(self.at_ns) == self._most:
            self._step *= 2
            steps = [size // self._step for size in self.sizes]
            firsts = [place for place, step in enumerate(steps) if step not in steps[:place][-1:]]
            self.at_ns = array("q", [self.at_ns[place] for place in firsts])
            self.sizes = array("q", [self.sizes[place] for place in firsts])
        self._next = (self.sizes[-1] // self._step + 1) * self._step

    def points(self) -> list[tuple[int, int]]:
        """Return instants (ns) and bytes, the first and the last read among them."""
        found = list(zip(self.at_ns, self.sizes, strict=True))
        if found and found[-1] != self._last:
            found.append(self._last)
        return found


def packed_points(row: int, of: Progress) -> bytes:
    """Return the points of a request that has this row among its worker's requests."""
    return b"".join(PACK.pack(at_ns, size, row) for at_ns, size in of.points())


def progress(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the points of a worker's requests, given their rows."""
    import pandas as pd

    packed = rows_in(folder / FILE, POINT)
    points = {name: np.array(packed[name]) for name in ("at_ns", "bytes")}
    return pd.DataFrame({**of_requests(packed, worker, rows), **points})
