"""One look for every figure: inks, fonts, lines, whatever a notebook has set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from perflab.recordings import ContrastPair, RunRecord

INK = "#222222"
MUTED = "#767676"
FAINT = "#D9D9D9"

# Colours that stay apart for those who do not see red or green, each a step lighter or darker in
# greyscale than the one before and the one after, and at least 3:1 against white.
PALETTE = (
    "#0072B2", "#D55E00", "#CC79A7", "#3B3B3B", "#C98500", "#00805D", "#3A93C9", "#6B4E1E",
)  # fmt: skip


@cache
def _settings() -> dict[str, Any]:
    # Not for whoever draws nothing: seaborn imports scipy.stats, which takes a second.
    import seaborn as sns

    base = {**sns.axes_style("whitegrid"), **sns.plotting_context("paper")}
    return {
        **base,
        # Shipped with matplotlib: the same letters, hence the same bytes, on every machine.
        "font.family": ["DejaVu Sans"],
        "font.size": 8.5,
        "axes.titlesize": 9,
        "axes.titlelocation": "left",
        "axes.labelsize": 8.5,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.formatter.useoffset": False,
        "axes.unicode_minus": True,
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
        "legend.title_fontsize": 8,
        "legend.frameon": False,
        "text.color": INK,
        # A label may hold a dollar sign; it is never meant as mathematics.
        "text.parse_math": False,
        "text.usetex": False,
        # Hinted letters change their widths with the resolution, and lines their length.
        "text.hinting": "none",
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "savefig.bbox": None,
        "svg.fonttype": "path",
        "path.simplify": True,
    }


@contextmanager
def applied(**extra: Any) -> Iterator[None]:
    """Apply the style, and only while the block runs, whatever the notebook has set."""
    kept = ("backend", "interactive", "toolbar", "webagg", "keymap", "date.")
    defaults = {key: v for key, v in mpl.rcParamsDefault.items() if not key.startswith(kept)}
    settings: Any = {**defaults, **_settings(), **extra}
    with mpl.rc_context(settings):
        yield


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


MARKERS = ("o", "s", "D", "^", "v", "P", "X", "h")


@dataclass(frozen=True)
class Look:
    """How one treatment appears in every figure of a run."""

    color: str
    marker: str
    label: str


def appearance(place: int) -> tuple[str, str]:
    """Return the colour and marker of the thing in a place; no two of the first 64 are alike.

    Colours begin anew with the ninth, and markers then lie one further on.
    """
    again, number = divmod(place, len(PALETTE))
    return PALETTE[number], MARKERS[(number + again) % len(MARKERS)]


def luminance(color: str) -> float:
    """Return how light a colour is in greyscale, from 0 (black) to 1 (ITU-R BT.601)."""
    red, green, blue = to_rgb(color)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def looks_of(record: RunRecord) -> dict[str, Look]:
    """Return each treatment's look, those that are compared side by side.

    Colour and marker go by the treatment's place in the record and nothing else.
    """
    found = {
        treatment.name: Look(*appearance(place), label=treatment.label or treatment.name)
        for place, treatment in enumerate(record.treatments)
    }
    return {name: found[name] for name in side_by_side(record)}


def in_order(table: pd.DataFrame, treatments: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a table in the order of their treatments, else as they stand."""
    place = table["treatment"].map({name: n for n, name in enumerate(treatments)})
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def compared_pairs(record: RunRecord) -> list[tuple[str, str]]:
    """Return every pair of treatments that some claim of the run compares, each pair once.

    Where a claim takes several treatments a side, those that are alike in all other factors.
    """
    found: dict[frozenset[str], tuple[str, str]] = {}
    for contrast in record.contrasts:
        if contrast.not_testable:
            continue
        for sides in filter(None, (contrast, contrast.interaction)):
            for pair in _matched(record, sides):
                found.setdefault(frozenset(pair), pair)
    return list(found.values())


def _matched(record: RunRecord, sides: ContrastPair) -> Iterator[tuple[str, str]]:
    above, below = (record.selected(each) for each in (sides.numerator, sides.denominator))
    varied = {*sides.numerator, *sides.denominator}
    rest = {
        item.name: {factor: level for factor, level in item.levels.items() if factor not in varied}
        for item in record.treatments
    }
    alone = len(above) == len(below) == 1
    for one in above:
        yield from ((one, other) for other in below if alone or rest[one] == rest[other])


def side_by_side(record: RunRecord) -> list[str]:
    """Return the treatments' names, each followed by one it is compared with where it can be.

    Otherwise in the order of the record.
    """
    partners: dict[str, list[str]] = {item.name: [] for item in record.treatments}
    for one, other in compared_pairs(record):
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
