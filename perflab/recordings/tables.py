"""Turning what a trial measured into typed tables, and refusing what does not fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pydantic import ValidationError

from perflab.errors import RecordingError
from perflab.recordings.columns import PHASE_COLUMN, check_columns
from perflab.recordings.reasons import Reason, Remark

# The name of a trial's folder.
TRIAL_ID = re.compile(r"b(\d{3,})-p(\d{2,})-a(\d+)")
REQUIRED = ("trial_id", "block", "position", "attempt", "treatment", "state")
# Of results of other tools, which the lab neither measured nor can judge.
NOT_JUDGED = "not judged"
STATES = ("valid", "invalid", "failed", NOT_JUDGED)
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
    "client_cpu_share", "client_cpu_us_per_request", "littles_law_ratio", "paused_cpu_share",
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
# What a trial that failed before it measured has in a column.
ABSENT: dict[str, Any] = {
    **dict.fromkeys(_TEXT, ""), **dict.fromkeys(_WHOLE, 0), "server_count": -1,
    "client_real_time": -1, **dict.fromkeys(_REAL, math.nan),
    "reasons": [], "warnings": [], "flush_us": [],
}  # fmt: skip


def trial_id(block: int, position: int, attempt: int) -> str:
    """Return the name of a trial's folder, which sorts in the order the trials ran."""
    return f"b{block:03d}-p{position:02d}-a{attempt}"


def parse_trial_id(name: str) -> tuple[int, int, int]:
    """Return block, position and attempt; RecordingError where the name is not a trial's."""
    match = TRIAL_ID.fullmatch(name)
    if match is None:
        raise RecordingError(f"'{name}' is not a trial id (b<block>-p<position>-a<attempt>)")
    block, position, attempt = (int(part) for part in match.groups())
    return block, position, attempt


def typed_table(
    kind: str, schema: pa.Schema, table: pd.DataFrame | pa.Table | None, where: str
) -> pa.Table:
    """Return ``table``, which is called ``kind``, with its schema; None gives an empty one.

    Phases become float32; other columns beyond the schema are kept as they are. RecordingError
    where a column is missing, or holds what its type cannot.
    """
    if table is None:
        return schema.empty_table()
    names = table.columns if isinstance(table, pd.DataFrame) else table.column_names
    check_columns(schema, kind, names, where)
    try:
        given: Any = table
        if isinstance(table, pd.DataFrame):
            given = pa.Table.from_pandas(table, preserve_index=False)
        wanted = schema
        for field in given.schema:
            if field.name not in schema.names:
                is_phase = kind == "requests" and PHASE_COLUMN.fullmatch(field.name)
                wanted = wanted.append(field.with_type(pa.float32()) if is_phase else field)
        return given.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise RecordingError(f"{where}: {kind} do not fit their schema: {error}") from error


def trial_table(row: Mapping[str, Any]) -> pa.Table:
    """Return a trial's row as a table of one row; what a failed trial lacks is filled in.

    RecordingError where a required column is missing or contradicts another, or a value has the
    wrong type.
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
    """Refuse a trial's row that lacks who it is or contradicts itself."""
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise RecordingError(f"a trial's row lacks {', '.join(missing)}")
    wanted = trial_id(row["block"], row["position"], row["attempt"])
    if row["trial_id"] != wanted:
        raise RecordingError(f"trial id '{row['trial_id']}' should be '{wanted}'")
    if row["state"] not in STATES:
        raise RecordingError(
            f"trial {wanted}: state '{row['state']}' is none of {', '.join(STATES)}"
        )
    for name in KINDS_OF_REMARK:
        try:
            remarks(name, row.get(name))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise RecordingError(
                f"trial {wanted}: {name} are models with code, side and text: {first['msg']:.200} "
                f"({first['input']!r:.100})"
            ) from error


def remarks(name: str, cells: Iterable[Any] | None) -> list[Remark]:
    """Return what a row holds in ``reasons`` or ``warnings`` as models; nothing of None."""
    kind = KINDS_OF_REMARK[name]
    return [kind.model_validate(cell) for cell in (() if cells is None else cells)]


def _extra_type(name: str, value: object) -> pa.DataType:
    """Return the type of a column beyond the schema: text, a whole number, or a real one."""
    if name.startswith("factor_") or isinstance(value, str):
        return pa.string()
    # A share or a time may be a whole number in one trial and none in the next.
    return pa.int64() if isinstance(value, int) else pa.float64()
