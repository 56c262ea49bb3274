"""How a figure's files shall look: for which background, and how wide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perflab.errors import ParameterError
from perflab.figures.sheets import COLUMN, PAGE, Sheet
from perflab.figures.theme import DARK, LIGHT, THEMES, Theme

# Inches. A slide is a page's layout, enlarged: 10 inches are three quarters of a wide one.
WIDTHS_IN = {"column": COLUMN.width_in, "page": PAGE.width_in, "slide": 10.0}
# Of PNGs, in print: a column's are shown larger than they are printed.
DOTS_PER_INCH, DOTS_PER_INCH_OF_A_COLUMN = 200, 400


@dataclass(frozen=True)
class Style:
    """How a figure's files shall look; by default as in a notebook.

    Attributes
    ----------
    theme : str
        "light" or "dark": the background that it is made for.
    transparent : bool
        Whether that background is left out.
    width : str
        "column" (3.4 inches, laid out anew), "page" (7.2) or "slide" (10, a page enlarged).

    Raises
    ------
    ParameterError
        A word is none of these.
    """

    theme: str = "light"
    transparent: bool = False
    width: str = "page"

    def __post_init__(self) -> None:
        problems = [
            f"{name} '{value}' is none of {', '.join(known)}"
            for name, value, known in (
                ("theme", self.theme, THEMES),
                ("width", self.width, WIDTHS_IN),
            )
            if value not in known
        ]
        if problems:
            raise ParameterError("figures", problems)

    @property
    def colors(self) -> Theme:
        """The inks of the theme."""
        return THEMES[self.theme]

    @property
    def sheet(self) -> Sheet:
        """What the figure is laid out for."""
        return COLUMN if self.width == "column" else PAGE

    @property
    def scale(self) -> float:
        """How much the files are enlarged: layout is done in inches of print."""
        return WIDTHS_IN["slide"] / WIDTHS_IN["page"] if self.width == "slide" else 1.0

    @property
    def dots_per_inch(self) -> int:
        """How fine a PNG is."""
        return DOTS_PER_INCH_OF_A_COLUMN if self.sheet is COLUMN else DOTS_PER_INCH

    @property
    def background(self) -> str:
        """The colour behind everything, or "none"."""
        return "none" if self.transparent else self.colors.background

    def suffix(self) -> str:
        """Return what is added to the names of files: all these can lie in one folder."""
        of_column = "" if self.sheet is PAGE else f"-{self.sheet.name}"
        of_theme = "" if self.theme == LIGHT.name else f"-{DARK.name}"
        return of_column + of_theme

    def told(self) -> dict[str, Any]:
        """Return what differs from the usual, for a figure's origin."""
        usual = Style()
        return {k: v for k, v in vars(self).items() if v != getattr(usual, k)}


def style_of(origin: Mapping[str, Any]) -> Style:
    """Return the style that a figure's origin tells of."""
    return Style(**origin.get("style", {}))


PLAIN = Style()
