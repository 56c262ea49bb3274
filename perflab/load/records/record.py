"""The record of a load on disk: every request and the summary, and the folder for them.

The folder is checked before anything is sent. Temporary folders are removed with their process,
unless a message has named them to the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.errors import LoadError, ParameterError
from perflab.host.files import OWNER, replace_file, temporary_folder, whole_file
from perflab.load.records.columns import PHASE, frame, phase_names
from perflab.load.records.result import LoadResult
from perflab.load.workload.schedule import planned_count
from perflab.load.workload.workload import Workload

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
    """Write the requests of all workers, piece by piece."""
    phases = sorted({PHASE.format(name) for place in result.places for name in phase_names(place)})
    writer: pq.ParquetWriter | None = None
    for number, (place, rows) in enumerate(zip(result.places, result.rows, strict=True)):
        for begin in range(0, max(1, len(rows)), ROWS_PER_GROUP):
            table = frame(place, number, begin, begin + ROWS_PER_GROUP)
            for name in phases:
                table[name] = table.get(name, np.float32(np.nan))
            group = pa.Table.from_pandas(
                table, schema=writer and writer.schema, preserve_index=False
            )
            writer = writer or pq.ParquetWriter(file, group.schema, compression="zstd")
            writer.write_table(group)
    if writer is not None:
        writer.close()


LEAST_FREE_BYTES = 64 * 1024 * 1024
# A raw row with its phases, and both again as Parquet.
BYTES_PER_REQUEST = 250


def raw_folder() -> Path:
    """Make a temporary folder of this process (in ``TMPDIR``); remove those of ended processes."""
    return temporary_folder("load")


@dataclass
class Place:
    """A folder for a record; ``keep`` says that it must outlive the load."""

    folder: Path
    keep: bool = False

    @property
    def raw(self) -> Path:
        """Return the folder that workers write to."""
        return self.folder / "raw"

    def has_rows(self) -> bool:
        """Return whether a worker has written anything."""
        return any(file.stat().st_size for file in self.raw.glob("*/requests.rows"))


def folder_problems(option: str, folder: Path) -> list[str]:
    """Return why a new folder cannot be made, without making it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return [f"{option} {folder} exists; name a new folder, nothing is overwritten"]
    above = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not above.is_dir():
        return [f"{option} {folder}: {above} is no folder; name another place"]
    if not os.access(above, os.W_OK | os.X_OK):
        return [f"{option} {folder}: {above} cannot be written to; name another place"]
    return []


def check_space(folder: Path, workload: Workload) -> None:
    """Raise ParameterError for a disk that the record would fill."""
    needed = LEAST_FREE_BYTES + BYTES_PER_REQUEST * max(0, planned_count(workload.arrivals))
    free = shutil.disk_usage(folder).free
    if free < needed:
        text = f"{folder} has {free >> 20} MiB free, the record may need {needed >> 20}"
        way_out = "make room, or name another disk with --out (without --out: with TMPDIR)"
        raise ParameterError("perflab load", [f"{text}: {way_out}"])


@contextlib.contextmanager
def place(folder: Path | None, workload: Workload) -> Iterator[Place]:
    """Yield the folder for raw rows: the record's own, or a temporary one that is removed.

    A folder without a record is removed again. Raise ParameterError or LoadError if the folder
    cannot be written, or its disk is too full.
    """
    new_folders: list[Path] = []
    try:
        if folder is None:
            root = raw_folder()
            new_folders = [root]
        else:
            root = folder.resolve()
            new_folders = [one for one in (root, *root.parents) if not one.exists()]
            root.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise LoadError(f"cannot write {error.filename}: {error.strerror}") from None
    here = Place(root)
    try:
        check_space(root, workload)
        yield here
    finally:
        if folder is None and here.keep:
            # A message has named the folder to the user: without its owner's mark it stays.
            (root / OWNER).unlink(missing_ok=True)
        elif folder is None:
            shutil.rmtree(root, ignore_errors=True)
        with contextlib.suppress(OSError):
            for new_folder in new_folders:
                new_folder.rmdir()
