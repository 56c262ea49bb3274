"""The console that commands print to, and tables that fit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

# A column that is narrower breaks most words.
READABLE = 12
GAP = 2


def make_console() -> Console:
    """Return a console as wide as the terminal; in a file or pipe 80 columns, or COLUMNS."""
    return Console()


def frame_table(rows: pd.DataFrame, styles: Mapping[str, Mapping[str, str]] | None = None) -> Table:
    """Return a table of texts; ``styles`` are by column and text, that of "" for all others."""
    table = Table(*map(str, rows.columns))
    for row in rows.to_dict("records"):
        cells = []
        for name, value in row.items():
            own = (styles or {}).get(str(name), {})
            cells.append(Text(str(value), own.get(str(value), own.get("", ""))))
        table.add_row(*cells)
    return table


def print_table(table: Table) -> None:
    """Print a table so that nothing of it is cut, however narrow the console.

    Cells wrap. Where columns would become too narrow to read, each row is printed as lines of name
    and value. In a file or pipe there are no lines around cells and no blanks at ends of lines.
    """
    out = make_console()
    fitting = table if _readable_width(table.columns) <= out.width else _as_lines(table)
    fitting.box = box.SIMPLE_HEAD if out.is_terminal and fitting is table else None
    fitting.show_edge = fitting.pad_edge = fitting.show_lines = False
    fitting.padding = (0, GAP if fitting.box is None else GAP - 1, 0, 0)
    for column in fitting.columns:
        column.overflow = "fold"
    if out.is_terminal:
        out.print(fitting)
        return
    with out.capture() as captured:
        out.print(fitting)
    for line in captured.get().splitlines():
        print(line.rstrip())


def _readable_width(columns: Iterable[Column]) -> int:
    widths = [max(map(_length, [column.header, *column.cells]), default=0) for column in columns]
    allowed = [
        width if column.no_wrap else min(width, READABLE)
        for width, column in zip(widths, columns, strict=True)
    ]
    return sum(allowed) + GAP * (len(allowed) - 1)


def _length(cell: object) -> int:
    return max(map(cell_len, str(cell).splitlines()), default=0)


def _as_lines(table: Table) -> Table:
    """Return a table with a line for every cell, and an empty one between rows."""
    lines = Table(title=table.title, title_justify="left", show_header=False)
    lines.add_column(no_wrap=True, style="bold")
    lines.add_column()
    names = [Text(str(column.header)) for column in table.columns]
    for number, row in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if number:
            lines.add_row("", "")
        for name, cell in zip(names, row, strict=True):
            lines.add_row(name, cell)
    return lines
