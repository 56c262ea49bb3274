"""Rows of the chunks of streamed answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.clients.streams import Streamed
from perflab.load.records.spool import of_requests, rows_in

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROW = np.dtype([("at_ns", "<i8"), ("bytes", "<i4"), ("request", "<u4")])
# In place of a length: the request asked for a stream, and no chunk came. The length of an end
# marker is stored as its complement.
NOTHING = -(2**31)
CHUNKS_FILE = "chunks.rows"


def packed_chunks(row: int, stream: Streamed | None) -> bytes:
    """Return the packed chunks of the request with this row number among its worker's requests.

    A request without chunks has a row as well: it may have been cut off before the first chunk.
    """
    if stream is None or not stream.sizes:
        return np.array([(0, NOTHING, row)], dtype=CHUNK_ROW).tobytes()
    packed = np.empty(len(stream.sizes), dtype=CHUNK_ROW)
    packed["at_ns"], packed["bytes"], packed["request"] = stream.at_ns, stream.sizes, row
    if stream.is_ended:
        packed["bytes"][-1] = ~packed["bytes"][-1]
    return packed.tobytes()


def chunk_rows(folder: Path) -> np.ndarray:
    """Return the chunks that a worker wrote, by request and number (see ``ROW``)."""
    return rows_in(folder / CHUNKS_FILE, CHUNK_ROW)


def chunks(folder: Path, worker: int, rows: np.ndarray) -> pd.DataFrame:
    """Return the table of chunks of a worker's requests, given the rows of the requests."""
    import pandas as pd

    packed = chunk_rows(folder)
    streamed = packed[packed["bytes"] != NOTHING]
    size = streamed["bytes"]
    requests = pd.Series(streamed["request"])
    return pd.DataFrame(
        {
            **of_requests(streamed, worker, rows),
            "number": requests.groupby(requests).cumcount().astype(np.int32),
            "at_ns": np.array(streamed["at_ns"]),
            "bytes": np.where(size < 0, ~size, size),
            "is_end": size < 0,
        }
    )
