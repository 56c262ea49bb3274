"""Prints tables, and handles standard streams that are closed, full, or lack letters."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import textwrap
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from perflab.errors import PerflabError
from perflab.statistics.in_words import visible

if TYPE_CHECKING:
    import pandas as pd

    from perflab.recordings.display import Shown

PLACE_ERRORS = (
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EPIPE,
    errno.EROFS,
)  # fmt: skip
# A narrower column breaks most words.
READABLE = 12
GAP = 2


class OutputFailed(PerflabError):
    """Standard output or a file cannot be written."""


@contextlib.contextmanager
def usable() -> Iterator[None]:
    """Check the standard streams before the block, and flush standard output after it.

    Raises
    ------
    OutputFailed
        Standard output is closed (then the block does not begin), or it or a file is not writable.
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
        # Otherwise Python would flush standard output at exit and fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader has seen enough, as in `perflab runs | head`
        what = error.filename or "what was to be shown or recorded cannot be written"
        raise OutputFailed(f"{what}: {error.strerror or error}") from None


def _fill_closed() -> set[int]:
    """Open /dev/null for closed standard streams; return their numbers.

    Otherwise the next opened file would take the number, and children would write to it.
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


def named_here(path: Path) -> str:
    """Return a path as one types it in the working folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def make_console() -> Console:
    """Return a console as wide as the terminal; for a file or pipe COLUMNS or 80 columns."""
    return Console()


def frame_table(
    rows: pd.DataFrame, marks: Mapping[str, str] | None = None, right: Container[str] = ()
) -> Table:
    """Return a table of texts; ``marks`` are colours by the first line of a cell."""
    table = Table()
    for name in map(str, rows.columns):
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows.itertuples(index=False, name=None):
        table.add_row(*(_cell(visible(str(value)), marks or {}) for value in row))
    return table


def _cell(text: str, marks: Mapping[str, str]) -> Text:
    first, newline, rest = text.partition("\n")
    color = marks.get(first, "")
    return Text(first, "" if color == "transparent" else color).append(newline + rest, "default")


def print_shown(shown: Shown) -> None:
    """Print a table that shows itself; an empty line separates rows of several lines."""
    console = make_console()
    if shown.heading:
        console.print(Text(shown.heading, "bold"))
    if len(shown.text):
        table = frame_table(shown.text, shown.marks, shown.right)
        table.leading = int(shown.text.map(lambda cell: "\n" in str(cell)).to_numpy().any())
        print_table(table)
    for note in shown.notes:
        print_note(note)


def print_note(text: str) -> None:
    """Print an empty line, then a text that wraps between words."""
    # Ids and paths stay whole.
    filled = textwrap.fill(
        visible(text), make_console().width, break_on_hyphens=False, break_long_words=False
    )
    print(f"\n{filled}")


def print_table(table: Table) -> None:
    """Print a table without cutting it, however narrow the console.

    Cells wrap between words, so that identifiers and paths stay whole. Where columns would be too
    narrow to read, each row becomes lines of name and value; only there a word may overflow. A
    file or pipe gets no lines around cells and no blanks at the ends of lines.
    """
    console = make_console()
    fitting = table if _readable_width(table.columns) <= console.width else _as_lines(table)
    fitting.box = box.SIMPLE_HEAD if console.is_terminal and fitting is table else None
    fitting.show_edge = fitting.pad_edge = fitting.show_lines = False
    # Without a box, rich draws no leading.
    fitting.padding = (0, GAP if fitting.box is None else GAP - 1, fitting.leading, 0)
    fitting.leading = 0
    widths = _widths(fitting.columns, console.width)
    for column, width in zip(fitting.columns, widths, strict=True):
        column.width = width
    console.width = max(console.width, sum(widths) + GAP * (len(widths) - 1))
    if console.is_terminal:
        console.print(fitting)
        return
    with console.capture() as captured:
        console.print(fitting)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_parts(rows: pd.DataFrame) -> None:
    """Print a table of texts as tables one below the other, none wider than the console.

    Each part begins with the first column.
    """
    first, *others = map(str, rows.columns)
    widths = {
        name: max(cell_len(visible(text)) for text in (name, *map(str, rows[name]))) + GAP
        for name in (first, *others)
    }
    parts, left = [[first]], make_console().width - widths[first] + GAP
    room = left
    for name in others:
        if widths[name] > room and len(parts[-1]) > 1:
            parts.append([first])
            room = left
        parts[-1].append(name)
        room -= widths[name]
    for number, names in enumerate(parts):
        if number:
            print()
        print_table(frame_table(rows[names], right=others))


def _readable_width(columns: Sequence[Column]) -> int:
    allowed = [max(least, min(most, READABLE)) for least, most in map(_least_and_most, columns)]
    return sum(allowed) + GAP * (len(allowed) - 1)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Return the widths of columns: of their longest words at least, and what is left in turn."""
    ends = [*map(_least_and_most, columns)]
    widths = [least for least, _ in ends]
    for _ in range(room - GAP * (len(ends) - 1) - sum(widths)):
        growing = [place for place, (_, most) in enumerate(ends) if widths[place] < most]
        if not growing:
            break
        widths[min(growing, key=widths.__getitem__)] += 1
    return widths


def _least_and_most(column: Column) -> tuple[int, int]:
    """Return the length of a column's longest word (all of it where it may not wrap), and line."""
    cells = [column.header, *column.cells]
    most = max(map(_length, cells), default=0)
    words = (cell_len(word) for cell in cells for word in str(cell).split())
    return most if column.no_wrap else max(words, default=0), most


def _length(cell: object) -> int:
    return max(map(cell_len, str(cell).splitlines()), default=0)


def _as_lines(table: Table) -> Table:
    """Return a table with a line for every cell, and an empty line between rows."""
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
