"""Reading the files of other tools: bounded, a line at a time, with errors that name the line."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused, RecordingError
from perflab.imports import units
from perflab.recordings.opening import open_plain, read_plain

HEAD_BYTES = 64 * 1024
LONGEST_LINE_BYTES = 4 * 2**20
LARGEST_DOCUMENT_BYTES = 16 * 2**20
SHOWN = 80


def head_of(path: Path) -> str:
    """Return the beginning of a file.

    Raises
    ------
    ImportRefused
        It is missing, empty, no plain file, or no text in UTF-8.
    """
    try:
        with open_plain(path) as file:
            found = file.read(HEAD_BYTES)
    except (OSError, RecordingError) as error:
        raise refused(path, 0, _why(error)) from None
    if not found.strip():
        raise refused(path, 0, "it is empty; did the tool end in an error?")
    if found.startswith((b"\xff\xfe", b"\xfe\xff")):
        way_out = "save it as UTF-8 (in PowerShell: | Out-File -Encoding utf8)"
        raise refused(path, 1, f"it is written in UTF-16; {way_out}")
    if found.startswith(b"\x1f\x8b"):
        raise refused(path, 1, "it is compressed; unpack it first (gunzip)")
    # A character may be cut in two at the end.
    return found.decode("utf-8-sig", "replace")


def lines_of(path: Path, all_end: bool = False) -> Iterator[tuple[int, str]]:
    """Yield every line with its number, from 1, without its end, which ``all_end`` demands.

    Raises
    ------
    ImportRefused
        A line is longer than any of a tool's, or no UTF-8.
    """
    try:
        with open_plain(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE_BYTES + 1):
                number += 1
                if len(line) > LONGEST_LINE_BYTES:
                    raise refused(path, number, f"it is longer than {LONGEST_LINE_BYTES:,} bytes")
                if all_end and not line.endswith(b"\n"):
                    raise refused(path, number, "it ends within a line: it is cut off")
                yield number, _decoded(path, number, line)
    except (OSError, RecordingError) as error:
        raise refused(path, 0, _why(error)) from None


def text_of(path: Path) -> list[tuple[int, str]]:
    """Return all lines of a report with their numbers; one of a tool's has a few hundred."""
    found = []
    size = 0
    for number, line in lines_of(path):
        size += len(line) + 1
        if size > LARGEST_DOCUMENT_BYTES:
            raise refused(path, number, f"a report has at most {LARGEST_DOCUMENT_BYTES:,} bytes")
        found.append((number, line))
    return found


def document_of(path: Path) -> dict[str, Any]:
    """Return a file that is one JSON object.

    Raises
    ------
    ImportRefused
        It is too large, cut off, or something else.
    """
    try:
        content = read_plain(path, LARGEST_DOCUMENT_BYTES)
        found = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise refused(path, error.lineno, f"it is no JSON, or cut off: {error.msg}") from None
    except (OSError, ValueError, RecursionError, RecordingError) as error:
        raise refused(path, 0, _why(error)) from None
    if not isinstance(found, dict):
        raise refused(path, 1, "it is no JSON object")
    return found


def record_of(path: Path, number: int, line: str) -> dict[str, Any]:
    """Return a line that is one JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise refused(path, number, f"it is no JSON object, or cut off: {_shown(line)}")
    return found


def rows_of(path: Path, header: Sequence[str], delimiter: str = ",") -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table below its header, which must name all of ``header``.

    Raises
    ------
    ImportRefused
        A column is missing, or a row has more or fewer cells than the header.
    """
    # A number that is cut off is a number still.
    source = lines_of(path, all_end=True)
    _, first = next(source, (0, ""))
    # No tool has quotes or commas within its names.
    names = [name.strip('"') for name in first.split(delimiter)]
    if missing := [name for name in header if name not in names]:
        raise refused(path, 1, f"the header lacks {', '.join(missing)}")
    # The lines of a table: a cell in quotes may hold several.
    last = 1

    def texts() -> Iterator[str]:
        nonlocal last
        for number, line in source:
            last = number
            yield line + "\n"

    try:
        for cells in csv.reader(texts(), delimiter=delimiter):
            if not cells:
                continue
            if len(cells) != len(names):
                said = f"it has {len(cells)} cells, the header {len(names)}; is the file cut off?"
                raise refused(path, last, said)
            yield last, Row(path, last, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise refused(path, last, str(error)) from None


class Row(dict[str, str]):
    """A row of a table, by column."""

    def __init__(self, path: Path, line: int, cells: dict[str, str]) -> None:
        super().__init__(cells)
        self._place = path, line

    def number(self, name: str) -> float:
        """Return a number; NaN where the tool wrote ``N/A``."""
        text = self[name]
        if text in ("N/A", ""):
            return math.nan
        try:
            return units.number(text)
        except ValueError as error:
            raise refused(*self._place, f"column '{name}': {error}") from None

    def whole(self, name: str) -> int:
        """Return a number of things."""
        found = self.number(name)
        if not (found >= 0 and found.is_integer()):
            raise refused(*self._place, f"column '{name}': '{self[name]}' is no number of things")
        return int(found)


def refused(path: Path, line: int, text: str) -> ImportRefused:
    """Return the error for a file, and a line of it where one is known (not 0)."""
    return ImportRefused(f"{path}{f', line {line}' if line else ''}: {text}")


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, number, f"it is no UTF-8 ({error.reason})") from None
    return text.rstrip("\r\n")


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _shown(line: str) -> str:
    return repr(line if len(line) <= SHOWN else f"{line[:SHOWN]}...")
