"""The record of a load on disk: every request, and what the load showed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.durable import replace_file, whole_file
from perflab.load.columns import PHASE, ROW, phases, words
from perflab.load.outcome import ERRORS, STAGES
from perflab.load.result import LoadResult
from perflab.load.workload import Workload

ROWS_PER_GROUP = 1 << 20


def write(
    folder: Path, result: LoadResult, workload: Workload, shown: Mapping[str, Any], url: str
) -> None:
    """Write ``requests.parquet`` and ``load.json``; both appear whole or not at all."""
    with whole_file(folder / "requests.parquet") as file:
        _write_requests(file, result)
    tables = {
        "messages": result.messages,
        "progress": result.progress,
        "chunks": result.stream_chunks,
    }
    for name, rows in tables.items():
        if len(rows):
            table = pa.Table.from_pandas(rows, preserve_index=False)
            with whole_file(folder / f"{name}.parquet") as file:
                pq.write_table(table, file)
    record = {"url": url, "workload": workload.model_dump(mode="json"), **shown}
    replace_file(folder / "load.json", (json.dumps(record, indent=1) + "\n").encode())


def _write_requests(file: BinaryIO, result: LoadResult) -> None:
    """Write the requests of all workers, a piece at a time."""
    columns = list(zip(result.places, result.rows, strict=True))
    names = sorted({name for place, rows in columns for name in phases(place, len(rows))})
    writer: pq.ParquetWriter | None = None
    for number, (place, rows) in enumerate(columns):
        columns_of_worker = phases(place, len(rows))
        for begin in range(0, max(1, len(rows)), ROWS_PER_GROUP):
            part = rows[begin : begin + ROWS_PER_GROUP]
            group = _group(part, number)
            for name in names:
                values = columns_of_worker.get(name, np.full(len(rows), np.nan, dtype=np.float32))
                group[PHASE.format(name)] = pa.array(values[begin : begin + ROWS_PER_GROUP])
            arrow = pa.table(group)
            writer = writer or pq.ParquetWriter(file, arrow.schema, compression="zstd")
            writer.write_table(arrow)
    if writer is not None:
        writer.close()


def _group(rows: np.ndarray, worker: int) -> dict[str, pa.Array]:
    group: dict[str, pa.Array] = {
        "stage": pa.array(words(STAGES, rows["stage"])),
        "worker": pa.array(np.full(len(rows), worker, dtype=np.int16)),
    }
    for name in ROW.names or ():
        if name not in ("stage", "error"):
            group[name] = pa.array(np.ascontiguousarray(rows[name]))
    group["error"] = pa.array(words(ERRORS, rows["error"]))
    return group
