"""The tables that pictures are drawn from, as CSV that reads back as what it was.

Texts are quoted and numbers are not, so that a level called ``200`` stays a text and an empty text
is no missing number. Numbers have six significant digits; a missing one is ``nan``.
"""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
import pandas as pd

# Beyond it a float is no longer every whole number.
EXACT = 2.0**53


def to_csv(table: pd.DataFrame) -> str:
    """Return a table of texts and numbers as CSV.

    Raises
    ------
    TypeError
        A column holds anything else (truth values are better told in words).
    """
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(map(str, table.columns))
    # Parts without rows make columns of numbers look like any others.
    typed = table.infer_objects()
    columns = [_cells(str(name), typed[name]) for name in typed.columns]
    writer.writerows(zip(*columns, strict=True))
    return target.getvalue()


def read_csv(text: str) -> pd.DataFrame:
    """Return the table of :func:`to_csv`; a column of whole numbers holds integers."""
    names, *rows = csv.reader(io.StringIO(text), quoting=csv.QUOTE_NONNUMERIC)
    return pd.DataFrame(rows, columns=names).apply(_whole)


def reread(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as its file would give it back."""
    return read_csv(to_csv(table))


class _Number(float):
    """A number that is written with six significant digits."""

    def __repr__(self) -> str:
        return f"{float(self):.6g}"

    __str__ = __repr__


def _cells(name: str, column: pd.Series[Any]) -> list[Any]:
    if pd.api.types.is_bool_dtype(column):
        raise TypeError(f"column '{name}' holds truth values; a table of a view has words for them")
    if pd.api.types.is_integer_dtype(column):
        return [int(value) for value in column]
    if pd.api.types.is_float_dtype(column):
        return [_Number(value) for value in column]
    return [_text(name, value) for value in column]


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    raise TypeError(f"column '{name}' holds a {type(value).__name__} among its texts")


def _whole(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.dtype.kind != "f" or not np.isfinite(column).all():
        return column
    whole = (column == column.round()) & (column.abs() < EXACT)
    return column.astype(int) if whole.all() else column
