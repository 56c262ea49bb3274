"""Values and tables as text: estimates with their intervals, cells, Markdown tables."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.effect_words import interval_words
from perflab.statistics.in_words import MISSING, at_least, missing, number, visible

# The beginning of an HTML element.
TAG = re.compile(r"<(?=[A-Za-z/!?])")
# What a site would make into a link to a person or an issue.
MENTION = re.compile(r"(?<![\w`/&])(?:@[A-Za-z][\w-]*|#\d+\b)")


def measured(value: float, low: float, high: float) -> str:
    """Return a measured quantity with its interval: ``483 [471, 502]``; a bound: ``>= 483``."""
    if missing(value) and missing(high) and not missing(low):
        # Requests were cut off, so only a lower bound is known.
        return at_least(low)
    return interval_words(value, low, high, "level")


def p_value(value: Any) -> str:
    """Return a p-value with two significant digits, ``< 0.001`` below that."""
    if missing(value):
        return MISSING
    value = float(value)
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def count(value: Any) -> str:
    """Return a whole number."""
    return MISSING if missing(value) else f"{int(value):,}"


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell: floats get three significant digits."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return "; ".join(map(cell_text, value)) or MISSING
    if missing(value):
        return MISSING
    return number(value) if isinstance(value, float | np.floating) else str(value)


def json_number(value: Any) -> Any:
    """Return a value for JSON; None for a float that is not finite, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_numeric(column: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, which are aligned right."""
    return bool(pd.api.types.is_numeric_dtype(column)) and column.dtype != bool


def to_markdown(table: pd.DataFrame) -> str:
    """Return ``table`` as a GitHub-flavoured Markdown table; numbers are aligned right.

    Cells may hold anything: bars are escaped, line breaks become spaces, floats get three
    significant digits. A table without rows becomes a sentence.
    """
    if table.empty:
        return "*(no rows)*\n"
    names = [cell(name) for name in table.columns]
    rules = ["---:" if is_numeric(table.iloc[:, i]) else "---" for i in range(len(names))]
    rows = [[cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [names, rules, *rows])


def cell(value: Any) -> str:
    """Return a cell's text on one line; no link, picture, formula or HTML can come of it."""
    text = visible(" ".join(cell_text(value).split())).replace("\\", "\\\\").replace("|", "\\|")
    # In pairs these marks mean a formula, or words that are struck out.
    for mark in "$~":
        if text.count(mark) > 1 and "`" not in text:
            text = text.replace(mark, f"\\{mark}")
    if "`" not in text:
        text = MENTION.sub(r"`\g<0>`", text)
    return TAG.sub(r"\\<", text.replace("](", "]\\("))
