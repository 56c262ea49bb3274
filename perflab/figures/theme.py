"""One style for every figure, whatever a notebook has set, and one look for every treatment."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.textpath import TextToPath

from perflab.recordings import RunRecord
from perflab.statistics.in_words import visible

INK = "#222222"
MUTED = "#767676"
FAINT = "#D9D9D9"

# People who do not see red or green can tell these colours apart. Each is a step lighter or darker
# in greyscale than its neighbours, and has a contrast of at least 3:1 with white.
PALETTE = (
    "#0072B2", "#D55E00", "#CC79A7", "#3B3B3B", "#00805D", "#C98500", "#6B4E1E", "#3A93C9",
)  # fmt: skip
# A published value is a diamond of this colour, and no treatment is.
PUBLISHED_COLOR = "#882255"


# Shipped with matplotlib: the same letters, and the same bytes, on every machine. The others have
# the letters that it lacks, where one is installed.
FONT = "DejaVu Sans"
OTHER_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Emoji", "Symbola")
SNAPPED = 1.06
MARKERS = ("o", "s", "^", "v", "P", "X", "h", "p")


@cache
def _families() -> list[str]:
    installed = {font.name for font in fontManager.ttflist}
    return [FONT, *(name for name in OTHER_FONTS if name in installed)]


@contextmanager
def _no_word_of_glyphs() -> Iterator[None]:
    """Draw a box for a letter that no font has, without a warning; the table has the name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@cache
def _settings() -> dict[str, Any]:
    # Imported only to draw: seaborn imports scipy.stats, which takes a second.
    import seaborn as sns

    base = {**sns.axes_style("whitegrid"), **sns.plotting_context("paper")}
    return {
        **base,
        "font.family": _families(),
        "font.size": 8.5,
        "axes.titlelocation": "left",
        "axes.labelsize": 8.5,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.formatter.useoffset": False,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "xtick.bottom": True,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.major.size": 3,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "text.color": INK,
        # A dollar sign in a label is never mathematics.
        "text.parse_math": False,
        # The widths of hinted letters, and so of lines, change with the resolution.
        "text.hinting": "none",
        # Many publishers refuse type 3.
        "pdf.fonttype": 42,
    }


@contextmanager
def applied() -> Iterator[None]:
    """Apply the style while the block runs, whatever the notebook has set."""
    excluded = ("backend", "interactive", "toolbar", "webagg", "keymap", "date.")
    defaults = {key: v for key, v in mpl.rcParamsDefault.items() if not key.startswith(excluded)}
    settings: Any = {**defaults, **_settings()}
    with mpl.rc_context(settings), _no_word_of_glyphs():
        yield


@lru_cache(maxsize=20_000)
def text_width_in(text: str, size_pt: float, weight: str = "normal") -> float:
    """Return the largest width of one line of ``text`` in the style's font, in inches.

    Letters that are snapped to pixels or hinted are wider than their outlines: ``SNAPPED``.
    """
    font = FontProperties(family=_families(), size=size_pt, weight=weight)
    with _no_word_of_glyphs():
        width_pt, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width_pt) / 72 * SNAPPED


def wrap(text: str, size_pt: float, width_in: float, weight: str = "normal") -> list[str]:
    """Break ``text`` into lines of at most ``width_in`` inches; longer words are cut."""
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

    A label of more than ``lines`` lines loses its middle: labels mostly differ at their end.
    """
    # "name = level" stays on one line wherever it fits.
    whole = text.replace(" = ", "\u00a0=\u00a0")
    shown, length = whole, len(whole)
    while len(broken := wrap(shown, size_pt, width_in)) > lines and length > 8:
        length -= 2
        shown = f"{whole[: length // 2].rstrip()}…{whole[-(length // 2) :].lstrip()}"
    return "\n".join(broken)


@dataclass(frozen=True)
class Style:
    """The colour, marker and label of a treatment in every figure of a run."""

    color: str
    marker: str
    label: str


def appearance(place: int) -> tuple[str, str]:
    """Return the colour and marker for a place; no two of the first 64 are alike.

    Colours repeat from the ninth place on, with the markers shifted by one.
    """
    again, number = divmod(place, len(PALETTE))
    return PALETTE[number], MARKERS[(number + again) % len(MARKERS)]


def luminance(color: str) -> float:
    """Return the lightness of a colour in greyscale, from 0 (black) to 1 (ITU-R BT.601)."""
    red, green, blue = to_rgb(color)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def styles_of(record: RunRecord) -> dict[str, Style]:
    """Return each treatment's look, compared treatments side by side.

    Colour and marker depend only on the treatment's place in the record.
    """
    styles = {
        name: Style(*appearance(place), label=visible(label))
        for place, (name, label) in enumerate(record.labels.items())
    }
    return {name: styles[name] for name in side_by_side(record)}


def in_order(table: pd.DataFrame, treatments: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a table sorted by treatment, in the given order of treatments."""
    place = table["treatment"].map({name: index for index, name in enumerate(treatments)})
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def side_by_side(record: RunRecord) -> list[str]:
    """Return the treatments' names; if possible, one that is compared with it follows each.

    Otherwise the order is that of the record.
    """
    partners: dict[str, list[str]] = {item.name: [] for item in record.treatments}
    for one, other in record.compared_pairs():
        partners[one].append(other)
        partners[other].append(one)
    recorded = list(partners)
    placed: dict[str, None] = {}
    waiting = recorded[::-1]
    while waiting:
        name = waiting.pop()
        if name not in placed:
            placed[name] = None
            waiting += sorted(partners[name], key=recorded.index, reverse=True)
    return list(placed)
