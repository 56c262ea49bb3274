"""What recordings of an older schema hold, in the shape of today's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from perflab.errors import RecordingError

# Of what was said of a trial before it had a code.
UNCODED = "recorded.without_code"
_TEXTS = pa.list_(pa.string())
_OLD = ("reasons", "reason_sides", "warnings")


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
