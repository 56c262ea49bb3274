"""Standard streams that are closed, full, or cannot show every letter."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from perflab.errors import PerflabError

if TYPE_CHECKING:
    import pandas as pd

PLACE_ERRORS = (
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EPIPE,
    errno.EROFS,
)  # fmt: skip


class OutputFailed(PerflabError):
    """What the user was to read, or a file, cannot be written."""


@contextlib.contextmanager
def usable() -> Iterator[None]:
    """Check the standard streams before the block, and see that all of it was written after it.

    Raises
    ------
    OutputFailed
        Standard output is closed (then the block is not begun), or it or a file cannot be written.
    """
    closed = _fill_closed()
    if 1 in closed:
        raise OutputFailed(
            "standard output is closed, so nothing was started; send it to a file or to /dev/null"
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal's encoding lacks is shown as '?'.
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in PLACE_ERRORS:
            raise
        # Else what is left of standard output is tried, and fails, once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader has seen enough, as in `perflab runs | head`
        what = error.filename or "what was to be shown or recorded cannot be written"
        raise OutputFailed(f"{what}: {error.strerror or error}") from None


def _fill_closed() -> set[int]:
    """Put /dev/null in the place of closed standard streams; return their numbers.

    Otherwise the next file that is opened would take the number, and children would write to it.
    """
    closed = set()
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            closed.add(number)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    return closed


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
