"""Numbers in the JSON of tools: each at its place, or an error that names the place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflab.imports.reading import refused


class Numbers:
    """An object of a tool's JSON, of which numbers are asked by the names that lead to them."""

    def __init__(self, path: Path, document: Mapping[str, Any], line: int = 0) -> None:
        self._path, self._document, self._line = path, document, line

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
        return self.whole(self.number(*names), *names)

    def whole(self, value: float, *names: str) -> int:
        """Return a value that counts things."""
        if not value.is_integer():
            raise self._fault(names, f"is {value:g}, which counts nothing")
        return int(value)

    def sum_of(self, *names: str) -> int:
        """Return the sum of the counts in an object."""
        return sum(self.count(*names, each) for each in self.inside(*names))

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
        return refused(self._path, self._line, f"'{'.'.join(names)}' {text}")
