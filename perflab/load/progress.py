"""Bytes over time within one request: a bounded number of points, spread over its body.

Points are reads of the client: when bytes were read, and how many of the body had come by then. The
first and the last are always kept; between them the first of every step of the body's length. The
step is a fraction of that length where the head tells it; when the points are used up, the step is
doubled and what is too many dropped. So the error of a waterfall drawn from them is one step,
however long the body is and whatever its length was said to be.
"""

from __future__ import annotations

import struct
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.spool import of_requests, rows_in

if TYPE_CHECKING:
    import pandas as pd

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
