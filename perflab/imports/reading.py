"""Reading the files of other tools: texts, tables and JSON, bounded; errors name file and line."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused, RecordingError
from perflab.recordings.opening import open_plain, read_plain

HEAD_BYTES = 64 * 1024
LARGEST_BYTES = 16 * 2**20
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_TIME = re.compile(r"(\S*?)\s*(us|ms|s|m|h)", re.ASCII)
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3.6e6}


def refused(path: Path, line: int, text: str) -> ImportRefused:
    """Return the error for a file, and a line of it where one is known (not 0)."""
    return ImportRefused(f"{path}{f', line {line}' if line else ''}: {text}")


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


def text_of(path: Path) -> str:
    """Return a whole file.

    Raises
    ------
    ImportRefused
        It cannot be read, is larger than a report of these tools, or no UTF-8.
    """
    content = b""
    try:
        content = read_plain(path, LARGEST_BYTES)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refused(path, line, f"it is no UTF-8 ({error.reason})") from None
    except (OSError, RecordingError) as error:
        raise refused(path, 0, _why(error)) from None


def document_of(path: Path) -> dict[str, Any]:
    """Return a file that is one JSON object.

    Raises
    ------
    ImportRefused
        It is too large, cut off, or something else.
    """
    try:
        found = json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise refused(path, error.lineno, f"it is no JSON, or cut off: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise refused(path, 0, str(error)) from None
    if not isinstance(found, dict):
        raise refused(path, 1, "it is no JSON object")
    return found


def rows_of(path: Path, header: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a CSV below its header, which must name all of ``header``.

    Raises
    ------
    ImportRefused
        A column is missing, or a row has more or fewer cells than the header.
    """
    text = text_of(path)
    if not text.endswith("\n"):
        # A number that is cut off is a number still.
        raise refused(path, text.count("\n") + 1, "it ends within a line: it is cut off")
    lines = csv.reader(text.splitlines(keepends=True))
    try:
        names = next(lines, [])
        if missing := [name for name in header if name not in names]:
            raise refused(path, 1, f"the header lacks {', '.join(missing)}")
        for cells in lines:
            if len(cells) != len(names):
                said = f"it has {len(cells)} cells, the header {len(names)}; is the file cut off?"
                raise refused(path, lines.line_num, said)
            yield Row(path, lines.line_num, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise refused(path, lines.line_num, str(error)) from None


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
            return number(text)
        except ValueError as error:
            raise refused(*self._place, f"column '{name}': {error}") from None

    def whole(self, name: str) -> int:
        """Return a number of things."""
        found = self.number(name)
        if not (found >= 0 and found.is_integer()):
            raise refused(*self._place, f"column '{name}': '{self[name]}' is no number of things")
        return int(found)


def number(text: str) -> float:
    """Return a finite number.

    Raises
    ------
    ValueError
        It is none; a comma in it is explained.
    """
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        hint = ""
        if "," in plain:
            hint = "; the tool wrote commas for its locale: run it with LC_ALL=C"
        raise ValueError(f"{plain[:40]!r} is no number{hint}")
    found = float(plain)
    if not math.isfinite(found):
        raise ValueError(f"{plain[:40]!r} is too large")
    return found


def time_ms(text: str) -> float:
    """Return a time with its unit (``1.23ms``, ``12us``, ``1.00m``) in ms; NaN of ``-nanus``.

    Raises
    ------
    ValueError
        It is none, has no unit, or is below 0.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is no time with a unit (us, ms, s, m, h)")
    if match[1] in ("nan", "-nan"):
        return math.nan
    found = number(match[1]) * _MS[match[2]]
    if found < 0:
        raise ValueError(f"{text.strip()[:40]!r} is below 0")
    return found


class Report:
    """The lines of a report in text, which holds one load that begins with ``begin``.

    Raises
    ------
    ImportRefused
        There is none, or more than one.
    """

    def __init__(self, path: Path, begin: str) -> None:
        self.path = path
        self._lines = text_of(path).splitlines()
        begins = [line for line, _ in self.all(begin)]
        if not begins:
            raise refused(path, 1, "it does not begin as a report of this tool")
        if len(begins) > 1:
            way_out = "save each in a file of its own"
            raise refused(path, begins[1], f"a second report begins here; {way_out}")

    def all(self, pattern: str, after: str = "") -> Iterator[tuple[int, re.Match[str]]]:
        """Yield number and match of lines that a pattern fits whole, below the first ``after``.

        With ``after`` an empty line that follows a found one ends the search.
        """
        wanted, found = re.compile(pattern), False
        begun = not after
        for line, text in enumerate(self._lines, 1):
            if not begun:
                begun = re.fullmatch(after, text) is not None
            elif match := wanted.fullmatch(text):
                found = True
                yield line, match
            elif after and found and not text.strip():
                return

    def first(self, pattern: str) -> re.Match[str] | None:
        """Return the first line that a pattern fits whole."""
        return next((match for _, match in self.all(pattern)), None)

    def number(self, pattern: str, what: str) -> float:
        """Return the number in the first group of the first line that fits.

        Raises
        ------
        ImportRefused
            There is no such line: the report is cut off.
        """
        return self._read(pattern, what, number)

    def time_ms(self, pattern: str, what: str) -> float:
        """Return a time with its unit, as :meth:`number` does."""
        return self._read(pattern, what, time_ms)

    def count(self, pattern: str, what: str) -> int:
        """Return a number of things, as :meth:`number` does."""
        return int(self._read(pattern, what, int))

    def count_or(self, pattern: str, otherwise: int) -> int:
        """Return a number of things; ``otherwise`` where the tool left it out."""
        return self.count(pattern, "") if self.first(pattern) else otherwise

    def value(self, line: int, text: str, kind: Callable[[str], float]) -> float:
        """Return a value of a line.

        Raises
        ------
        ImportRefused
            It is none; names the line.
        """
        try:
            return kind(text)
        except ValueError as error:
            raise refused(self.path, line, str(error)) from None

    def _read(self, pattern: str, what: str, kind: Callable[[str], float]) -> float:
        for line, match in self.all(pattern):
            return self.value(line, match[1], kind)
        said = f"it ends without {what}; was the tool interrupted?"
        raise refused(self.path, len(self._lines), said)


class Numbers:
    """A tool's JSON, of which numbers are asked by the names that lead to them."""

    def __init__(self, path: Path) -> None:
        self._path, self._document = path, document_of(path)

    def inside(self, *names: str) -> Mapping[str, Any]:
        """Return the object at a place; an empty one where there is none."""
        found = self._at(names)
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise self._fault(names, "is no object")
        return found

    def number(self, *names: str) -> float:
        """Return a number of at least 0.

        Raises
        ------
        ImportRefused
            There is none; the message names the place.
        """
        found = self.told(*names)
        if math.isnan(found):
            raise self._fault(names, "is missing; is the file whole, and of this version?")
        return found

    def told(self, *names: str) -> float:
        """Return a number of at least 0, NaN where there is none or null."""
        found = self._at(names)
        if found is None:
            return math.nan
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self._fault(names, f"is no number: {str(found)[:40]!r}")
        try:
            value = float(found)
        except OverflowError:
            value = math.inf
        if not (value >= 0 and math.isfinite(value)):
            raise self._fault(names, f"is {value:g}, which cannot be")
        return value

    def count(self, *names: str) -> int:
        """Return a number of things."""
        value = self.number(*names)
        if not value.is_integer():
            raise self._fault(names, f"is {value:g}, which counts nothing")
        return int(value)

    def _at(self, names: tuple[str, ...]) -> Any:
        found: Any = self._document
        for name in names:
            if not isinstance(found, Mapping):
                raise self._fault(names, "is not where it should be")
            found = found.get(name)
            if found is None:
                return None
        return found

    def _fault(self, names: tuple[str, ...], text: str) -> Exception:
        return refused(self._path, 0, f"'{'.'.join(names)}' {text}")


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
