"""The paper that figures are laid out for: how wide it is, and how panels share it."""

from __future__ import annotations

from dataclasses import dataclass

# Inches; sizes of letters are in points.
WIDTH_IN, MARGIN_IN = 7.2, 0.1
TEXT_IN = WIDTH_IN - 2 * MARGIN_IN
TITLE_PT, LABEL_PT, KEY_PT, FOOTER_PT = 11.0, 8.5, 8.0, 6.5
KEY_LINE_IN = 0.158
# What numbers and label at the side of a panel take of its room.
BESIDE_IN = 0.2


@dataclass(frozen=True)
class Grid:
    """Panels of one figure: so many side by side, the others below.

    ``words_in`` is how long a line over or in one of them may be.
    """

    count: int
    across: int
    words_in: float

    @property
    def down(self) -> int:
        """How many rows of panels there are."""
        return -(-self.count // self.across)

    def room_in(self, inches: float) -> float:
        """Return a length, or as much of it as a panel has room for."""
        return min(inches, self.words_in)


def grid_of(count: int, across: int) -> Grid:
    """Return ``count`` panels, not more than ``across`` of them abreast."""
    fitting = max(1, min(across, count))
    return Grid(count, fitting, TEXT_IN / fitting - BESIDE_IN)
