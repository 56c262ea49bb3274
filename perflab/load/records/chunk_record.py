"""The record of streams: one row of 16 bytes per chunk of a streamed answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.clients.streams import Streamed
from perflab.load.records.progress import of_requests, rows_in

if TYPE_CHECKING:
    import pandas as pd

ROW = np.dtype([("at_ns", "<i8"), ("bytes", "<i4"), ("request", "<u4")])
# In place of a length: the request was to be streamed, and nothing came. The length of an end
# marker is told from that of a chunk by its complement.
NOTHING = -(2**31)
FILE = "chunks.rows"


def packed_chunks(row: int, stream: Streamed | None) -> bytes:
    """Return the chunks of a request that has this row among its worker's requests.

    One that has none has a row as well: it may have been cut off before the first.
    """
    if stream is None or not stream.sizes:
        return np.array([(0, NOTHING, row)], dtype=ROW).tobytes()
    packed = np.empty(len(stream.sizes), dtype=ROW)
    packed["at_ns"], packed["bytes"], packed["request"] = stream.at_ns, stream.sizes, row
    if stream.is_ended:
        packed["bytes"][-1] = ~packed["bytes"][-1]
    return packed.tobytes()


def chunk_rows(folder: Path) -> np.ndarray:
    """Return the rows that a worker wrote, by request and number (see ``ROW``)."""
    return rows_in(folder / FILE, ROW)


def chunks(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the chunks of a worker's requests, given their rows, as a recording has them."""
    import pandas as pd

    packed = chunk_rows(folder)
    kept = packed[packed["bytes"] != NOTHING]
    size = kept["bytes"]
    first = np.flatnonzero(np.diff(kept["request"].astype(np.int64), prepend=-1))
    lengths = np.diff(first, append=len(kept))
    return pd.DataFrame(
        {
            **of_requests(kept, worker, rows),
            "number": (np.arange(len(kept)) - np.repeat(first, lengths)).astype(np.int32),
            "at_ns": np.array(kept["at_ns"]),
            "bytes": np.where(size < 0, ~size, size),
            "is_end": size < 0,
        }
    )
