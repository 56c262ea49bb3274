"""Converts the measurements of a trial to typed tables, and reads them back with checks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perflab.errors import RecordingError
from perflab.recordings.columns import ALWAYS, PHASE_COLUMN, check_columns, schemas
from perflab.recordings.files import check_files
from perflab.recordings.schema import Reason, Remark, RunRecord

# The name of a trial's folder.
TRIAL_ID = re.compile(r"b(\d{3,})-p(\d{2,})-a(\d+)")
REQUIRED = ("trial_id", "block", "position", "attempt", "treatment", "state")
# The state of imported trials, which the lab neither measured nor can judge.
NOT_JUDGED = "not judged"
JUDGED_STATES = ("valid", "invalid", "failed")
STATES = (*JUDGED_STATES, NOT_JUDGED)
KINDS_OF_REMARK: Mapping[str, type[Remark]] = {"reasons": Reason, "warnings": Remark}

_TEXT = ("trial_id", "treatment", "state", "started_at", "stopped")
_WHOLE = (
    "block", "position", "attempt", "begin_ns", "end_ns", "requests", "errors", "unsent",
    "capped", "server_count", "client_real_time",
)  # fmt: skip
_REAL = (
    "throughput_rps", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "service_mean_ms",
    "generator_lag_p50_ms", "generator_lag_p99_ms", "loop_delay_p99_ms", "loop_delay_max_ms",
    "run_delay_share", "connection_wait_p50_ms", "connection_wait_p99_ms", "service_p99_ms",
    "client_cpu_share", "client_cpu_us_per_request", "littles_law_ratio", "idle_cpu_share",
    "flush_p50_us", "flush_p99_us", "cpu_probe_before_ms", "cpu_probe_after_ms", "steal_share",
)  # fmt: skip
REMARKS = pa.list_(pa.struct([(name, pa.string()) for name in Remark.model_fields]))
TRIAL = pa.schema(
    [
        *((name, pa.string()) for name in _TEXT),
        *((name, pa.int64()) for name in _WHOLE),
        *((name, pa.float64()) for name in _REAL),
        ("reasons", REMARKS),
        ("warnings", REMARKS),
        ("flush_us", pa.list_(pa.float64())),
    ]
)
# The values of a trial that failed before it measured.
ABSENT: dict[str, Any] = {
    **dict.fromkeys(_TEXT, ""), **dict.fromkeys(_WHOLE, 0), "server_count": -1,
    "client_real_time": -1, **dict.fromkeys(_REAL, math.nan),
    "reasons": [], "warnings": [], "flush_us": [],
}  # fmt: skip


def trial_id(block: int, position: int, attempt: int) -> str:
    """Return the name of a trial's folder; names sort in the order in which trials ran."""
    return f"b{block:03d}-p{position:02d}-a{attempt}"


def parse_trial_id(name: str) -> tuple[int, int, int]:
    """Return block, position and attempt."""
    block, position, attempt = map(int, re.findall(r"\d+", name))
    return block, position, attempt


def typed_table(
    kind: str, schema: pa.Schema, table: pd.DataFrame | pa.Table | None, where: str
) -> pa.Table:
    """Return ``table`` with its schema; ``kind`` is its name, and None gives an empty table.

    Phases become float32; other columns beyond the schema stay as they are. RecordingError where a
    column is missing, or holds a value that does not fit its type.
    """
    if table is None:
        return schema.empty_table()
    names = table.columns if isinstance(table, pd.DataFrame) else table.column_names
    check_columns(schema, kind, names, where)
    try:
        arrow: Any = table
        if isinstance(table, pd.DataFrame):
            arrow = pa.Table.from_pandas(table, preserve_index=False)
        target = schema
        for field in arrow.schema:
            if field.name not in schema.names:
                is_phase = kind == "requests" and PHASE_COLUMN.fullmatch(field.name)
                target = target.append(field.with_type(pa.float32()) if is_phase else field)
        return arrow.select(target.names).cast(target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise RecordingError(f"{where}: {kind} do not fit their schema: {error}") from error


def trial_table(row: Mapping[str, Any]) -> pa.Table:
    """Return a trial's row as a table of one row: the columns of every trial, then its others.

    A failed trial may lack measured values: they are filled in. RecordingError where another column
    is missing or contradicts one, or a value has the wrong type.
    """
    check_row(row)
    filled = {**ABSENT, **row}
    for name in KINDS_OF_REMARK:
        filled[name] = [remark.model_dump() for remark in remarks(name, filled[name])]
    extra = [
        pa.field(name, _extra_type(name, row[name])) for name in row if name not in TRIAL.names
    ]
    columns = {}
    for field in [*TRIAL, *extra]:
        try:
            columns[field.name] = pa.array([filled[field.name]], type=field.type, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
            raise RecordingError(
                f"trial {row['trial_id']}: {field.name} = {filled[field.name]!r}: {error}"
            ) from error
    return pa.table(columns)


def check_row(row: Mapping[str, Any]) -> None:
    """Raise RecordingError for a trial's row with a missing column, wrong id, state or remarks."""
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise RecordingError(f"a trial's row lacks {', '.join(missing)}")
    expected = trial_id(row["block"], row["position"], row["attempt"])
    if row["trial_id"] != expected:
        raise RecordingError(f"trial id '{row['trial_id']}' should be '{expected}'")
    if row["state"] not in STATES:
        raise RecordingError(
            f"trial {expected}: state '{row['state']}' is none of {', '.join(STATES)}"
        )
    for name in KINDS_OF_REMARK:
        try:
            remarks(name, row.get(name))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise RecordingError(
                f"trial {expected}: {name} must be models with code, side and text: "
                f"{first['msg']:.200} ({first['input']!r:.100})"
            ) from error


def remarks(name: str, cells: Iterable[Any] | None) -> list[Remark]:
    """Return the ``reasons`` or ``warnings`` of a row as models; an empty list for None."""
    kind = KINDS_OF_REMARK[name]
    return [kind.model_validate(cell) for cell in (() if cells is None else cells)]


def _extra_type(name: str, value: object) -> pa.DataType:
    """Return the type of a column beyond the schema: text, integer or float."""
    if name.startswith("factor_") or isinstance(value, str):
        return pa.string()
    # A float column stays float in a trial whose value happens to be whole.
    return pa.int64() if isinstance(value, int) else pa.float64()


def read_row(folder: Path, record: RunRecord) -> pa.Table:
    """Return a trial's row after a check that the trial is whole and of this run.

    Files of up to 4 MiB are read to the end. Of larger ones only size and footer are checked;
    damage within is found when they are read. RecordingError names the damaged file.
    """
    with _naming(folder):
        check_files(folder)
    with _opened(folder, "trial") as parquet:
        row = parquet.read()
        _check_row(row, folder.name, record)
    for kind, schema in schemas(record.tables).items():
        if _exists(folder, kind):
            with _opened(folder, kind) as parquet:
                check_columns(schema, kind, parquet.schema_arrow.names, "it")
    return row


def read_table(folder: Path, kind: str) -> pa.Table | None:
    """Read a table of a trial and verify the checksums of its pages; None where there is none.

    RecordingError names the damaged file.
    """
    if not _exists(folder, kind):
        return None
    with _opened(folder, kind) as parquet:
        return parquet.read()


def has_rows(folder: Path, kind: str) -> bool | None:
    """Return whether a table of a trial has rows; None where it is missing or damaged."""
    with suppress(RecordingError):
        if _exists(folder, kind):
            with _opened(folder, kind) as parquet:
                return bool(parquet.metadata.num_rows)
    return None


def _exists(folder: Path, kind: str) -> bool:
    return kind in ALWAYS or (folder / f"{kind}.parquet").exists()


@contextmanager
def _opened(folder: Path, kind: str) -> Iterator[pq.ParquetFile]:
    path = folder / f"{kind}.parquet"
    with _naming(path), path.open("rb") as file:
        yield pq.ParquetFile(file, page_checksum_verification=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn every error of reading a damaged file into a RecordingError that names it."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException, RecordingError) as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise RecordingError(f"{path.name}: {lines[0]:.300}") from error


def _check_row(table: pa.Table, name: str, record: RunRecord) -> None:
    if table.num_rows != 1:
        raise RecordingError(f"it has {table.num_rows} rows, not one")
    (row,) = table.to_pylist()
    check_row(row)
    if row["trial_id"] != name:
        raise RecordingError(f"it holds the row of trial {row['trial_id']}")
    if row["block"] >= record.blocks:
        raise RecordingError(f"block {row['block']} is beyond the run's {record.blocks}")
    if row["treatment"] not in {treatment.name for treatment in record.treatments}:
        raise RecordingError(f"the treatment {row['treatment']!r:.100} is not in the run")
