"""Markdown that stays well formed whatever its cells hold."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from perflab.reports.numbers import cell_text, is_numeric

# What would become an element of HTML.
TAG = re.compile(r"<(?=[A-Za-z/!?])")


def to_markdown(table: pd.DataFrame) -> str:
    """Return ``table`` as a GitHub-flavoured Markdown table; columns of numbers lean right.

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
    """Return one cell's text in a line; no link, picture or element of HTML can come of it."""
    text = " ".join(cell_text(value).split()).replace("\\", "\\\\").replace("|", "\\|")
    return TAG.sub(r"\\<", text.replace("](", "]\\("))
