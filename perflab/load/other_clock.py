"""What a load worker of another host wrote and reported, brought to this host's clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perflab.load import chunk_record, columns, message_record, progress_record

# Which fields of which raw files are instants. By custom the key of a message is one, too.
INSTANTS: Mapping[str, tuple[np.dtype[Any], tuple[str, ...]]] = {
    columns.REQUESTS: (columns.ROW, columns.INSTANTS),
    chunk_record.FILE: (chunk_record.ROW, ("at_ns",)),
    progress_record.FILE: (progress_record.ROW, ("at_ns",)),
    message_record.FILE: (message_record.ROW, ("at_ns", "key")),
}


def shift_rows(folder: Path, by_ns: int) -> None:
    """Add to every instant in a worker's folder of raw rows; 0 means none and stays 0."""
    for name, (row, instants) in INSTANTS.items():
        path = folder / name
        if not path.exists() or not path.stat().st_size:
            continue
        packed = np.memmap(path, dtype=row, mode="r+")
        for instant in instants:
            packed[instant] += np.where(packed[instant] != 0, by_ns, 0)
        packed.flush()


def shifted(report: Mapping[str, Any], by_ns: int) -> dict[str, Any]:
    """Return a worker's report with its instants moved."""
    looks = {**report["looks"], "began_ns": report["looks"]["began_ns"] + by_ns}
    return {**report, "start_ns": report["start_ns"] + by_ns, "looks": looks}
