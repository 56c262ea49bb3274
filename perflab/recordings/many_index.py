"""The file in which rows of many runs are kept: one Parquet file, whole or not believed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from perflab.durable import whole_file
from perflab.errors import RecordingError
from perflab.recordings.opening import check_folder, open_plain

FOLDER_NAME = ".index"
FOLDER, SIGNATURE, FACTS, HAS_ROW = "folder", "index_signature", "index_facts", "index_has_row"
OWN = pa.schema(
    [
        (FOLDER, pa.string()),
        (SIGNATURE, pa.string()),
        (FACTS, pa.string()),
        (HAS_ROW, pa.bool_()),
    ]
)
CODE = b"perflab.code"
MOST_ROWS = 5_000_000
# What numbers are worked out with, beside the lab's own code.
PACKAGES = ("numpy", "pandas", "pyarrow", "scipy")


@cache
def fingerprint(*rooms: str) -> str:
    """Return a digest of the sources of some rooms of the package, and of what they reckon with."""
    home = Path(__file__).parent.parent
    digest = hashlib.sha256(" ".join(map(metadata.version, PACKAGES)).encode())
    for path in sorted([*home.glob("*.py"), *(file for room in rooms for file in
                                              (home / room).rglob("*.py"))]):  # fmt: skip
        content = path.read_bytes()
        digest.update(f"{path.relative_to(home).as_posix()}\0{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def read(path: Path, code: str) -> pa.Table:
    """Return the rows of an index; none where there is none, it is damaged or of other code."""
    try:
        check_folder(path.parent)
        with open_plain(path) as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            facts = parquet.metadata.metadata or {}
            if facts.get(CODE) != code.encode() or parquet.metadata.num_rows > MOST_ROWS:
                return OWN.empty_table()
            found = parquet.read()
    except (OSError, ValueError, RecordingError, pa.ArrowException):
        return OWN.empty_table()
    fits = all(
        name in found.column_names and found.schema.field(name).type == OWN.field(name).type
        for name in OWN.names
    )
    return found.replace_schema_metadata(None) if fits else OWN.empty_table()


def write(path: Path, table: pa.Table, code: str) -> None:
    """Put an index in the place of the one before; raises OSError where that cannot be."""
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as file:
        pq.write_table(
            table.replace_schema_metadata({CODE: code.encode()}),
            file,
            compression="zstd",
            write_page_checksum=True,
        )


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables one below the other; a column that has several types has one that fits all.

    Whole numbers beside real ones become real, anything beside a text becomes text.
    """
    kinds: dict[str, pa.DataType] = {field.name: field.type for field in OWN}
    for schema in dict.fromkeys(table.schema for table in tables):
        for field in schema:
            kinds[field.name] = _fitting(kinds.get(field.name, field.type), field.type)
    wanted = {
        table.schema: pa.schema([(name, kinds[name]) for name in table.column_names])
        for table in tables
    }
    return pa.concat_tables(
        [table.cast(wanted[table.schema]) for table in tables], promote_options="default"
    )


def _fitting(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    both = (one, other)
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in both):
        return pa.int64() if all(map(pa.types.is_integer, both)) else pa.float64()
    return pa.string()
