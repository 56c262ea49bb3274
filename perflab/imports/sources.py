"""What a parser asks a report for: lines of a text, numbers of a JSON, each found or refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perflab.imports.reading import document_of, number, refused, text_of, time_ms


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
