"""The paper that a figure is laid out for: how wide it is, and what has room on it."""

from __future__ import annotations

from dataclasses import dataclass


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
        """Return a length that was chosen for a page's panels, or as much of it as there is."""
        return min(inches, self.words_in)


@dataclass(frozen=True)
class Sheet:
    """Widths are in inches, sizes of letters in points.

    Attributes
    ----------
    narrow : bool
        Whether words stand above what they are about, for want of room beside it. How to read
        such a figure is left to its caption.
    beside_in : float
        What numbers and label at the side of a panel take of its room.
    panel_height : float
        How high a panel is, as a share of its height on a page.
    """

    name: str
    width_in: float
    margin_in: float
    title_pt: float
    key_pt: float
    key_line_in: float
    footer_pt: float
    label_pt: float
    tick_pt: float
    beside_in: float
    narrow: bool = False
    panel_height: float = 1.0

    @property
    def text_in(self) -> float:
        """How long a line may be."""
        return self.width_in - 2 * self.margin_in

    @property
    def letters(self) -> dict[str, float]:
        """The sizes of letters as settings of matplotlib."""
        return {
            "font.size": self.label_pt,
            "axes.labelsize": self.label_pt,
            "xtick.labelsize": self.tick_pt,
            "ytick.labelsize": self.tick_pt,
        }

    def within(self, inches: float) -> float:
        """Return a length that was chosen for a page, or as much of it as there is."""
        return min(inches, self.text_in)

    def height_in(self, inches: float) -> float:
        """Return how high a panel is that has this height on a page."""
        return inches * self.panel_height

    def grid(self, count: int, across: int, least_in: float) -> Grid:
        """Return ``count`` panels of at least ``least_in``, not more than ``across`` abreast."""
        fitting = max(1, min(across, count, int(self.text_in // least_in)))
        return Grid(count, fitting, self.text_in / fitting - self.beside_in)


PAGE = Sheet(
    "page", width_in=7.2, margin_in=0.1, title_pt=11.0, key_pt=8.0, key_line_in=0.158,
    footer_pt=6.5, label_pt=8.5, tick_pt=8.0, beside_in=0.2,
)  # fmt: skip
# The columns of journals are 3.3 to 3.5 inches wide.
COLUMN = Sheet(
    "column", width_in=3.4, margin_in=0.05, title_pt=9.0, key_pt=7.0, key_line_in=0.14,
    footer_pt=6.0, label_pt=7.5, tick_pt=7.0, beside_in=0.5, narrow=True, panel_height=0.65,
)  # fmt: skip
