"""The record of progress: one row of 20 bytes per point of a request."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.exchange import Exchange
from perflab.load.spool import Spool

if TYPE_CHECKING:
    import pandas as pd

ROW = np.dtype([("at_ns", "<i8"), ("bytes", "<i8"), ("request", "<u4")])
pack = struct.Struct("<qqI").pack
FLUSH_BYTES = 1 << 16
FILE = "progress.rows"


class ProgressRecorder:
    """Packs points into rows of 20 bytes; the file is there only if there was a point."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._spool: Spool | None = None
        self._buffer = bytearray()

    def add(self, row: int, exchange: Exchange) -> None:
        """Record the points of a request, which has this row of its worker's requests."""
        if exchange.progress is not None:
            for at_ns, size in exchange.progress.points():
                self._buffer += pack(at_ns, size, row)
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
