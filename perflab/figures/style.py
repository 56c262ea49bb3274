"""How a figure's files shall look: for which background, and how wide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perflab.errors import ParameterError
from perflab.figures.theme import DARK, LIGHT, THEMES, Theme

# Inches. A slide is a page's layout, enlarged: 10 inches are three quarters of a wide one.
WIDTHS_IN = {"page": 7.2, "slide": 10.0}
# Views are laid out for a page; scaled to a column their small print would have 3 points.
COLUMN = (
    "width 'column': the views are laid out for 7.2 inches and could not be read at 3.3; take "
    "'page', and let it span both columns (figure* in LaTeX, as the printed snippet does)"
)


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
        "page" (7.2 inches) or "slide" (10).

    Raises
    ------
    ParameterError
        A word is none of these.
    """

    theme: str = "light"
    transparent: bool = False
    width: str = "page"

    def __post_init__(self) -> None:
        if self.width == "column":
            raise ParameterError("figures", [COLUMN])
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
    def scale(self) -> float:
        """How much the files are enlarged: layout is done in inches of print."""
        return WIDTHS_IN["slide"] / WIDTHS_IN["page"] if self.width == "slide" else 1.0

    @property
    def background(self) -> str:
        """The colour behind everything, or "none"."""
        return "none" if self.transparent else self.colors.background

    def suffix(self) -> str:
        """Return what is added to the names of files: both themes can lie in one folder."""
        return "" if self.theme == LIGHT.name else f"-{DARK.name}"

    def told(self) -> dict[str, Any]:
        """Return what differs from the usual, for a figure's origin."""
        usual = Style()
        return {k: v for k, v in vars(self).items() if v != getattr(usual, k)}


def style_of(origin: Mapping[str, Any]) -> Style:
    """Return the style that a figure's origin tells of."""
    return Style(**origin.get("style", {}))


PLAIN = Style()
