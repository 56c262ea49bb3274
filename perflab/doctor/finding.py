"""A finding: what was looked at, what was found, whether that is well, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "beware", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One row of the table.

    ``beware``: measurements can be made, and something bears on them. ``wrong``: none can be made,
    or none that could be trusted. Both say what ``todo``.
    """

    what: str
    state: State
    found: str
    todo: str = ""


@dataclass(frozen=True)
class Machine:
    """The files in which the kernel tells of itself, below ``root``."""

    root: Path = Path("/")

    def text(self, path: str) -> str:
        """Return a file's text; empty where it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text()
        except OSError:
            return ""

    def line(self, path: str) -> str:
        """Return a file's first line without blanks at its ends; empty where there is none."""
        return self.text(path).strip().partition("\n")[0]

    def number(self, path: str) -> int | None:
        """Return the whole number that a file holds; None where it holds none."""
        line = self.line(path)
        return int(line) if line.isdecimal() else None
