"""What recordings of an older schema hold, in the shape of today's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from perflab.errors import RecordingError

# Of what was said of a trial or a run before it had a code.
UNCODED = "recorded.without_code"
_TEXTS = pa.list_(pa.string())
_OLD = ("reasons", "reason_sides", "warnings")
# Before schema 3 warnings of a run were texts, and a call chain was a stack, as services are.
_CODED = 3
_BEFORE_CALLS = {"calls": ("stacks", {"stack": "chain"})}


def table_name(kind: str, schema_version: int) -> str:
    """Return what a table was called that is now called ``kind``."""
    return _renamed(kind, schema_version)[0]


def column_names(kind: str, schema_version: int, names: Sequence[str]) -> list[str]:
    """Return what the columns of a table are called now."""
    now = _renamed(kind, schema_version)[1]
    return [now.get(name, name) for name in names]


def _renamed(kind: str, schema_version: int) -> tuple[str, Mapping[str, str]]:
    renamed = _BEFORE_CALLS if schema_version < _CODED else {}
    return renamed.get(kind, (kind, {}))


def upgraded_record(words: Mapping[str, Any], schema_version: int) -> dict[str, Any]:
    """Return the words of a record with today's names of tables, its warnings with a code.

    What is no record is left as it is: who reads it refuses it.
    """
    found = dict(words)
    if schema_version >= _CODED:
        return found
    if isinstance(found.get("warnings"), list):
        found["warnings"] = [
            {"code": UNCODED, "text": each} if isinstance(each, str) else each
            for each in found["warnings"]
        ]
    declared = found.get("tables")
    for kind in _BEFORE_CALLS:
        before = table_name(kind, schema_version)
        if isinstance(declared, dict) and isinstance(declared.get(before), dict):
            kept = {name: columns for name, columns in declared.items() if name != before}
            columns = declared[before]
            names = column_names(kind, schema_version, list(columns))
            found["tables"] = {**kept, kind: dict(zip(names, columns.values(), strict=True))}
    return found


def upgraded(row: pa.Table, remarks: pa.DataType) -> pa.Table:
    """Return a trial's row with its reasons and warnings as ``remarks`` (a list of structs).

    Schema 1 had them as texts, and whose fault the reasons tell of in ``reason_sides``, which the
    first of its recordings do not have.

    Raises
    ------
    RecordingError
        There are more or fewer sides than reasons.
    """
    (cells,) = row.select([name for name in _OLD if name in row.column_names]).to_pylist() or [{}]
    for name in ("reasons", "warnings"):
        if name in cells and row.schema.field(name).type == _TEXTS:
            told = pa.array([_told(name, cells)], type=remarks)
            row = row.set_column(row.column_names.index(name), name, told)
    return row.drop_columns([name for name in ("reason_sides",) if name in cells])


def _told(name: str, cells: Mapping[str, Any]) -> list[dict[str, str]]:
    texts = cells[name] or []
    sides = cells.get("reason_sides") if name == "reasons" else None
    sides = ["unknown"] * len(texts) if sides is None else sides
    if len(sides) != len(texts):
        raise RecordingError(f"{len(texts)} reasons have {len(sides)} sides")
    return [
        {"code": UNCODED, "side": side, "text": text}
        for side, text in zip(sides, texts, strict=True)
    ]
