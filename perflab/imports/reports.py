"""Reports in text: lines that a pattern finds, with the number of the line that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from perflab.imports.reading import refused, text_of
from perflab.imports.units import number, time_ms


class Report:
    """The lines of a report in text, which holds one load that begins with ``begin``.

    Raises
    ------
    ImportRefused
        There is none, or more than one.
    """

    def __init__(self, path: Path, begin: str) -> None:
        self.path = path
        self._lines = text_of(path)
        begins = [line for line, _ in self.all(begin)]
        if not begins:
            raise refused(path, 1, "it does not begin as a report of this tool")
        if len(begins) > 1:
            way_out = "save each in a file of its own"
            raise refused(path, begins[1], f"a second report begins here; {way_out}")

    def all(self, pattern: str, after: str = "") -> Iterator[tuple[int, re.Match[str]]]:
        """Yield the lines that a pattern fits whole, below the first that ``after`` fits.

        With ``after`` an empty line that follows a found one ends the search.
        """
        wanted, found = re.compile(pattern), False
        begun = not after
        for line, text in self._lines:
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
        """Return a number of things."""
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
        last = self._lines[-1][0]
        raise refused(self.path, last, f"it ends without {what}; was the tool interrupted?")
