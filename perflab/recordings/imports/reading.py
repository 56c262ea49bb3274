"""Reads the texts and JSON of other tools, with bounds; errors name file and line."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused

# Far above any summary.
LARGEST_BYTES = 256 * 2**20
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_TIME = re.compile(r"(\S*?)\s*(us|ms|s|m|h)", re.ASCII)
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3.6e6}


def refused(path: Path, line: int, text: str) -> ImportRefused:
    """Return the error for a file; ``line`` is 0 where it is not known."""
    return ImportRefused(f"{path}{f', line {line}' if line else ''}: {text}")


def bytes_of(path: Path) -> bytes:
    """Return a whole file; raises ImportRefused where it is unreadable, empty, or too large."""
    try:
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise refused(path, 0, f"has {size:,} bytes, at most {LARGEST_BYTES:,} are allowed")
        content = path.read_bytes()
    except OSError as error:
        raise refused(path, 0, error.strerror or str(error)) from None
    if not content.strip():
        raise refused(path, 0, "it is empty; did the tool end in an error?")
    return content


def text_of(path: Path, content: bytes) -> str:
    """Return a file's content as text; raises ImportRefused where it is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        way_out = "unpack it, or save it as UTF-8"
        raise refused(path, line, f"it is not UTF-8 ({error.reason}): {way_out}") from None


def number(text: str) -> float:
    """Return a finite number; raises ValueError, which explains a comma."""
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        hint = ""
        if "," in plain:
            hint = "; the tool wrote commas for its locale: run it with LC_ALL=C"
        raise ValueError(f"{plain[:40]!r} is no number{hint}")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{plain[:40]!r} is too large")
    return value


def time_ms(text: str) -> float:
    """Return a time of at least 0 with its unit (``1.23ms``, ``12us``, ``1.00m``) in ms.

    ``-nanus`` gives NaN; other texts raise ValueError.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is no time with a unit (us, ms, s, m, h)")
    if match[1] in ("nan", "-nan"):
        return math.nan
    value = number(match[1]) * _MS[match[2]]
    if value < 0:
        raise ValueError(f"{text.strip()[:40]!r} is below 0")
    return value


def share_name(percent: float) -> str:
    """Return the name of a percentile (0 to 100) in columns: ``p99``, ``p99_9``."""
    return f"p{percent:.10g}".replace(".", "_")


def step(text: str) -> float:
    """Return the place value of a number's last digit; in ms where it has a unit of time."""
    match = _TIME.fullmatch(text.strip())
    digits, unit_ms = (match[1], _MS[match[2]]) if match else (text.strip(), 1.0)
    return float(unit_ms / 10 ** len(digits.partition(".")[2]))


def csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row; ImportRefused where the file is damaged."""
    if not text.endswith("\n"):
        # Without this check a number that is cut off would pass as a number.
        raise refused(path, text.count("\n") + 1, "it ends within a line: it is cut off")
    above = len(text) - len(text.lstrip())
    table = csv.DictReader(io.StringIO(text[above:], newline=""), strict=True)
    lines_above = text.count("\n", 0, above)
    try:
        for row in table:
            if None in row or None in row.values():
                raise csv.Error("it has another number of cells than the header")
            yield lines_above + table.line_num, row
    except csv.Error as error:
        raise refused(path, lines_above + table.line_num, str(error)) from None


class Report:
    """The lines of a text report of one load.

    ``lines`` and ``steps`` are the line and the resolution of the numbers that were read, by name.

    Every method raises ImportRefused, which names the line, where a value is missing or wrong.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.steps: dict[str, float] = {}
        self._lines = text.splitlines()

    def all(self, pattern: str, after: str = "") -> Iterator[tuple[int, re.Match[str]]]:
        """Yield number and match of the whole lines that fit a pattern.

        With ``after`` the search begins below the first line that fits it.
        """
        compiled, begun = re.compile(pattern), not after
        for line, text in enumerate(self._lines, 1):
            if not begun:
                begun = re.fullmatch(after, text) is not None
            elif match := compiled.fullmatch(text):
                yield line, match

    def number(self, pattern: str, what: str, kind: Callable[[str], float] = number) -> float:
        """Return the number (or time) in the first group of the first line that fits a pattern."""
        for line, match in self.all(pattern):
            return self.value(line, match[1], kind, what)
        problem = f"it ends without its {what}; was the tool interrupted?"
        raise refused(self.path, len(self._lines), problem)

    def count(self, pattern: str, what: str) -> int:
        """Return a count, as :meth:`number` does."""
        return int(self.number(pattern, what, int))

    def counts(self, pattern: str) -> list[int]:
        """Return the counts in the groups of the first line that fits; empty without one."""
        for line, match in self.all(pattern):
            return [int(self.value(line, text, int)) for text in match.groups()]
        return []

    def shares(
        self, pattern: str, after: str, kind: Callable[[str], float]
    ) -> Iterator[tuple[str, float]]:
        """Yield name and value of each percentile: a share and a value, below a line."""
        for line, match in self.all(pattern, after):
            share = self.value(line, match[1], number)
            name = "max" if share == 100 else share_name(share)
            yield name, self.value(line, match[2], kind, name)

    def value(self, line: int, text: str, kind: Callable[[str], float], name: str = "") -> float:
        """Return the value of a text in a line, and keep line and resolution under its name."""
        self.lines[name], self.steps[name] = line, step(text)
        try:
            return kind(text)
        except ValueError as error:
            raise refused(self.path, line, str(error)) from None


class Numbers:
    """The numbers in a tool's JSON, each by the names that lead to it.

    Every method raises ImportRefused, which names the place, where a value is wrong.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        try:
            # An integer of any length is a float, or infinite.
            self.document: Any = json.loads(text, parse_int=float)
        except json.JSONDecodeError as error:
            raise refused(path, error.lineno, f"it is no JSON, or cut off: {error.msg}") from None
        except (ValueError, RecursionError) as error:
            raise refused(path, 0, str(error)) from None
        if not isinstance(self.document, dict):
            raise refused(path, 1, "it is no JSON object")

    def inside(self, *names: str) -> Mapping[str, Any]:
        """Return the object at a place, or an empty one."""
        value = self._at(names)
        if not isinstance(value, Mapping | None):
            raise self._fault(names, "is no object")
        return value or {}

    def number(self, *names: str) -> float:
        """Return a number of at least 0, which must exist."""
        value = self.number_or_nan(*names)
        if math.isnan(value):
            raise self._fault(names, "is missing; is the file whole, and of this version?")
        return value

    def number_or_nan(self, *names: str) -> float:
        """Return a number of at least 0; NaN where the tool reports none."""
        raw = self._at(names)
        if raw is None:
            return math.nan
        if not isinstance(raw, float):
            raise self._fault(names, f"is no number: {str(raw)[:40]!r}")
        if not (raw >= 0 and math.isfinite(raw)):
            raise self._fault(names, f"is {raw:g}, and must be finite and at least 0")
        return raw

    def count(self, *names: str) -> int:
        """Return a count."""
        value = self.number(*names)
        if not value.is_integer():
            raise self._fault(names, f"is {value:g}, which is not a count")
        return int(value)

    def _at(self, names: tuple[str, ...]) -> Any:
        value: Any = self.document
        for name in names:
            if not isinstance(value, Mapping):
                raise self._fault(names, "is not where it should be")
            value = value.get(name)
            if value is None:
                return None
        return value

    def _fault(self, names: tuple[str, ...], text: str) -> Exception:
        return refused(self.path, 0, f"'{'.'.join(names)}' {text}")
