"""Bytes over time within one request: a bounded number of points, spread over its body.

A point is a read of the client: its instant, and how many bytes of the body had arrived by then.
The first and the last read are kept, and between them the first read of each of as many equal steps
of the body's length as there may be points.
"""

from __future__ import annotations

import struct
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.records.spool import of_requests, rows_in

if TYPE_CHECKING:
    import pandas as pd

POINT = np.dtype([("at_ns", "<i8"), ("bytes", "<i8"), ("request", "<u4")])
PACK = struct.Struct("<qqI")
FILE = "progress.rows"


class ArrivalPoints:
    """When the bytes of one body came; of its reads at most ``most`` are told, at least 2."""

    __slots__ = ("_most", "at_ns", "sizes")

    def __init__(self, most: int) -> None:
        self._most = most
        self.at_ns = array("q")
        self.sizes = array("q")

    def note(self, at_ns: int, size: int) -> None:
        """Note that ``size`` bytes of the body had arrived at an instant."""
        self.at_ns.append(at_ns)
        self.sizes.append(size)

    def points(self) -> list[tuple[int, int]]:
        """Return points (instant in ns, bytes) over the body, with the first and last read."""
        pairs = list(zip(self.at_ns, self.sizes, strict=True))
        if len(pairs) <= self._most:
            return pairs
        spread = np.linspace(self.sizes[0], self.sizes[-1], self._most)[:-1]
        places = np.append(np.searchsorted(self.sizes, spread), len(pairs) - 1)
        return [pairs[place] for place in np.unique(places)]


def packed_points(row: int, arrival: ArrivalPoints) -> bytes:
    """Return the packed points of the request with this row number among its worker's requests."""
    return b"".join(PACK.pack(at_ns, size, row) for at_ns, size in arrival.points())


def progress(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the table of points of a worker's requests, given the rows of the requests."""
    import pandas as pd

    packed = rows_in(folder / FILE, POINT)
    points = {name: np.array(packed[name]) for name in ("at_ns", "bytes")}
    return pd.DataFrame({**of_requests(packed, worker, rows), **points})
