"""Reading one trial's folder: its row, once the trial is known to be whole, and its tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perflab.errors import RecordingError
from perflab.recordings.columns import ALWAYS, check_columns, schemas
from perflab.recordings.manifest import check_files
from perflab.recordings.opening import check_folder, open_plain
from perflab.recordings.schema import RunRecord
from perflab.recordings.tables import TRIAL, check_row

# Rates and times: none is below 0, and NaN stands for what was not measured.
_NOT_NEGATIVE = ("_rps", "_ms", "_us", "_ns")


def read_row(folder: Path, record: RunRecord) -> pa.Table:
    """Return a trial's row after making sure that the trial is whole and of this run.

    Files of up to 4 MiB are read to the end; of larger ones size and footer are looked at, and
    damage within is found when they are read. RecordingError names the damaged file.
    """
    with _named(folder):
        check_folder(folder)
        check_files(folder)
    with _opened(folder / "trial.parquet") as parquet:
        row = parquet.read()
        _check_row(row, folder.name, record)
    for kind, schema in schemas(record.tables).items():
        if _is_there(folder, kind):
            with _opened(_file(folder, kind)) as parquet:
                check_columns(schema, kind, parquet.schema_arrow.names, "it")
    return row


def read_table(folder: Path, kind: str) -> pa.Table | None:
    """Read a table of a trial and verify the checksums of its pages; None where it has none.

    RecordingError names the damaged file.
    """
    if not _is_there(folder, kind):
        return None
    with _opened(_file(folder, kind)) as parquet:
        return parquet.read()


def has_rows(folder: Path, kind: str) -> bool | None:
    """Say whether a table of a trial has rows; None where there is none, or a damaged one."""
    try:
        if _is_there(folder, kind):
            with _opened(_file(folder, kind)) as parquet:
                return bool(parquet.metadata.num_rows)
    except RecordingError:
        pass
    return None


def _is_there(folder: Path, kind: str) -> bool:
    return kind in ALWAYS or os.path.lexists(_file(folder, kind))


def _file(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.parquet"


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    with _named(path), open_plain(path) as file:
        yield pq.ParquetFile(file, page_checksum_verification=True)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn whatever reading a damaged file may raise into one error that names it."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException, RecordingError) as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise RecordingError(f"{path.name}: {lines[0]:.300}") from error


def _check_row(table: pa.Table, name: str, record: RunRecord) -> None:
    if table.num_rows != 1:
        raise RecordingError("it has no row")
    for field in TRIAL:
        if field.name in table.schema.names and table.schema.field(field.name).type != field.type:
            raise RecordingError(f"the column {field.name} is no {field.type}")
    (row,) = table.to_pylist()
    check_row(row)
    if row["trial_id"] != name:
        raise RecordingError(f"it holds the row of trial {row['trial_id']}")
    if row["block"] >= record.blocks:
        raise RecordingError(f"block {row['block']} is beyond the run's {record.blocks}")
    if row["treatment"] not in {treatment.name for treatment in record.treatments}:
        raise RecordingError(f"the treatment {row['treatment']!r:.100} is not in the run")
    _check_values(row)


def _check_values(row: Mapping[str, Any]) -> None:
    """Refuse infinite numbers, and rates and times that are below 0."""
    for field in TRIAL:
        value = row.get(field.name)
        if isinstance(value, float) and math.isinf(value):
            raise RecordingError(f"{field.name} is infinite")
        if isinstance(value, (int, float)) and value < 0 and field.name.endswith(_NOT_NEGATIVE):
            raise RecordingError(f"{field.name} = {value:.6g} is below 0")
    if row.get("end_ns", 0) < row.get("begin_ns", 0):
        raise RecordingError("it ends before it begins")
