"""Words that fit where they are put: their width, and where to break them."""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

SNAPPED = 1.06


@lru_cache(maxsize=20_000)
def text_width_in(text: str, size_pt: float, weight: str = "normal") -> float:
    """Return how wide one line of ``text`` can become in the style's font, in inches.

    Letters that are snapped to pixels or hinted take more room than their outlines: ``SNAPPED``.
    """
    font = FontProperties(family="DejaVu Sans", size=size_pt, weight=weight)
    width_pt, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width_pt) / 72 * SNAPPED


def wrap(text: str, size_pt: float, width_in: float, weight: str = "normal") -> list[str]:
    """Break ``text`` into lines no wider than ``width_in`` inches; overlong words are cut."""
    lines: list[str] = []
    line = ""
    for word in text.replace("\n", " ").split(" "):
        candidate = f"{line} {word}".strip()
        if text_width_in(candidate, size_pt, weight) <= width_in:
            line = candidate
            continue
        if line:
            lines.append(line)
        *whole, line = _cut(word, size_pt, width_in, weight)
        lines.extend(whole)
    return [*lines, line] if line else lines or [""]


def _cut(word: str, size_pt: float, width_in: float, weight: str) -> list[str]:
    pieces = [""]
    for letter in word:
        if pieces[-1] and text_width_in(pieces[-1] + letter, size_pt, weight) > width_in:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def tick_label(text: str, width_in: float = 1.9, size_pt: float = 8, lines: int = 6) -> str:
    """Return a treatment's label broken to fit beside an axis.

    Past ``lines`` lines its middle is left out: labels of one run tend to differ at their end.
    """
    # "name = level" stays on one line wherever it fits.
    whole = text.replace(" = ", "\u00a0=\u00a0")
    shown, kept = whole, len(whole)
    while len(broken := wrap(shown, size_pt, width_in)) > lines and kept > 8:
        kept -= 2
        shown = f"{whole[: kept // 2].rstrip()}…{whole[-(kept // 2) :].lstrip()}"
    return "\n".join(broken)
