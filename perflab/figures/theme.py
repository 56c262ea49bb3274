"""One look for every figure: inks, fonts, lines, whatever a notebook has set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib as mpl
import seaborn as sns

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
