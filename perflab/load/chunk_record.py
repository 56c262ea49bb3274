"""The record of streams: one row of 16 bytes per chunk of a streamed answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.exchange import Exchange
from perflab.load.spool import RareSpool
from perflab.load.streamed import Streamed

if TYPE_CHECKING:
    import pandas as pd

ROW = np.dtype([("at_ns", "<i8"), ("bytes", "<i4"), ("request", "<u4")])
# In place of a length: the request was to be streamed, and nothing came. The length of an end
# marker is told from that of a chunk by its complement.
NOTHING = -(2**31)
FILE = "chunks.rows"


class ChunkRecorder:
    """Packs chunks into rows of 16 bytes; the file is there only if a stream was asked for."""

    def __init__(self, folder: Path) -> None:
        self._spool = RareSpool(folder / FILE)
        self.close = self._spool.close

    def add(self, row: int, exchange: Exchange) -> None:
        """Record the chunks of a request, which has this row of its worker's requests.

        Also that it has none: it may have been cut off before the first.
        """
        self._spool.put(_packed(row, exchange.stream).tobytes())


def _packed(row: int, stream: Streamed | None) -> np.ndarray:
    if stream is None or not stream.sizes:
        return np.array([(0, NOTHING, row)], dtype=ROW)
    packed = np.empty(len(stream.sizes), dtype=ROW)
    packed["at_ns"], packed["bytes"], packed["request"] = stream.at_ns, stream.sizes, row
    if stream.is_ended:
        packed["bytes"][-1] = ~packed["bytes"][-1]
    return packed


def chunk_rows(folder: Path) -> np.ndarray:
    """Return the rows that a worker wrote, by request and number (see ``ROW``)."""
    path = folder / FILE
    if not path.exists() or not path.stat().st_size:
        return np.empty(0, dtype=ROW)
    return np.memmap(path, dtype=ROW, mode="r")


def chunks(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the chunks of a worker's requests, given their rows, as a recording has them."""
    import pandas as pd

    packed = chunk_rows(folder)
    found = packed[packed["bytes"] != NOTHING]
    request, size = found["request"].astype(np.int64), found["bytes"]
    first = np.flatnonzero(np.diff(request, prepend=-1))
    lengths = np.diff(first, append=len(found))
    own = rows[request]
    return pd.DataFrame(
        {
            "worker": np.full(len(found), worker, dtype=np.int16),
            "user": np.array(own["user"]),
            "request": request,
            "planned_ns": np.array(own["planned_ns"]),
            "number": (np.arange(len(found)) - np.repeat(first, lengths)).astype(np.int32),
            "at_ns": np.array(found["at_ns"]),
            "bytes": np.where(size < 0, ~size, size),
            "is_end": size < 0,
        }
    )
