"""The record of progress: one row of 20 bytes per point of a request."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.exchange import Exchange
from perflab.load.spool import RareSpool

if TYPE_CHECKING:
    import pandas as pd

ROW = np.dtype([("at_ns", "<i8"), ("bytes", "<i8"), ("request", "<u4")])
pack = struct.Struct("<qqI").pack
FILE = "progress.rows"


class ProgressRecorder:
    """Packs points into rows of 20 bytes; the file is there only if there was a point."""

    def __init__(self, folder: Path) -> None:
        self._spool = RareSpool(folder / FILE)
        self.close = self._spool.close

    def add(self, row: int, exchange: Exchange) -> None:
        """Record the points of a request, which has this row of its worker's requests."""
        if exchange.progress is not None:
            points = exchange.progress.points()
            self._spool.put(b"".join(pack(at_ns, size, row) for at_ns, size in points))


def progress(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the points of a worker's requests, given their rows.

    ``request`` is the number of the request in the order in which the worker's requests ended.
    """
    import pandas as pd

    path = folder / FILE
    found = np.fromfile(path, dtype=ROW) if path.exists() else np.empty(0, dtype=ROW)
    own = rows[found["request"]]
    return pd.DataFrame(
        {
            "worker": np.full(len(found), worker, dtype=np.int16),
            "user": np.array(own["user"]),
            "request": found["request"].astype(np.int64),
            "planned_ns": np.array(own["planned_ns"]),
            "at_ns": found["at_ns"],
            "bytes": found["bytes"],
        }
    )
