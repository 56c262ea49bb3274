"""What a check is given: named published rows, constants and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from perflab.errors import RecordingError
from perflab.published.intervals import Interval


class Word(StrEnum):
    """What the published numbers say of a statement by themselves."""

    INCONSISTENT = "inconsistent"
    CANNOT_TELL = "cannot be told"
    CONSISTENT = "consistent"


@dataclass(frozen=True)
class Result:
    """What a rule says, and the numbers that it computed."""

    word: Word
    numbers: str


@dataclass(frozen=True)
class Part:
    """One input of a check: a row (None where there is none such), a constant, or words."""

    name: str
    value: Interval | None = None
    row: str = ""
    text: str = ""


@dataclass(frozen=True)
class Parts:
    """The inputs of a check, by name; a name may stand several times."""

    parts: Sequence[Part]

    def named(self, name: str) -> list[Part]:
        """Return all parts of a name, in the order of the file."""
        return [part for part in self.parts if part.name == name]

    def values(self, name: str) -> list[Interval]:
        """Return the numbers of a name; raises RecordingError where one of them has none."""
        parts = self.named(name)
        values = [part.value for part in parts if part.value is not None]
        if len(values) < len(parts):
            raise RecordingError(f"part '{name}' has no number, and no row that has one")
        return values

    def value(self, name: str) -> Interval:
        """Return the one number of a name; raises RecordingError where there are others."""
        values = self.values(name)
        if len(values) != 1:
            raise RecordingError(f"wants one part '{name}', not {len(values)}")
        return values[0]

    def texts(self, name: str) -> list[str]:
        """Return the words of a name."""
        return [part.text for part in self.named(name)]
