"""Markdown that stays well formed whatever its cells hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from perflab.reports.numbers import MISSING, missing, number


def to_markdown(table: pd.DataFrame) -> str:
    """Return ``table`` as a GitHub-flavoured Markdown table; columns of numbers lean right.

    Cells may hold anything: bars are escaped, line breaks become spaces, floats get three
    significant digits. A table without rows becomes a sentence.
    """
    if table.empty:
        return "*(no rows)*\n"
    names = [cell(name) for name in table.columns]
    rules = ["---:" if _is_numeric(table.iloc[:, i]) else "---" for i in range(len(names))]
    rows = [[cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [names, rules, *rows])


def cell(value: Any) -> str:
    """Return one cell's text."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return " ".join(value.split()).replace("\\", "\\\\").replace("|", "\\|")
    if isinstance(value, list | tuple | np.ndarray):
        return cell("; ".join(str(item) for item in value)) or MISSING
    if missing(value):
        return MISSING
    if isinstance(value, float | np.floating):
        return number(value)
    return cell(str(value))


def _is_numeric(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column)) and column.dtype != bool
