"""One look for every figure: palette, fonts, and the words around the plot."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import TextToPath

from perflab.recordings import RunRecord

WIDTH_IN = 7.2
MARGIN_IN = 0.1
TEXT_IN = WIDTH_IN - 2 * MARGIN_IN
TITLE_PT = 11.0
SUBTITLE_PT = 8.0
KEY_PT = 8.0
KEY_LINE_IN = 0.158
KEY_HANDLE_IN = 0.4
FOOTER_PT = 6.5
LINE_SPACING = 1.3
SCREEN_DPI = 160
LAYOUT_DPI = 100
SNAPPED = 1.06

INK = "#222222"
MUTED = "#767676"
FAINT = "#D9D9D9"

# Okabe and Ito's colours that keep their contrast on white, darkest first, and two neutrals.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#3B3B3B",
    "#8B6B2E",
)
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "h")

P = ParamSpec("P")
T = TypeVar("T")
Line = tuple[str, float, str, str]


@dataclass(frozen=True)
class Look:
    """How one treatment appears in every figure of a run."""

    color: str
    marker: str
    dashed: bool
    label: str


class LabFigure(Figure):
    """A figure outside pyplot that still shows itself as a notebook cell's last expression."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        target = io.BytesIO()
        with applied():
            self.savefig(target, format="png", dpi=SCREEN_DPI)
        width_px, height_px = (round(float(inches) * 100) for inches in self.get_size_inches())
        return target.getvalue(), {"width": width_px, "height": height_px}


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
    defaults = {key: value for key, value in mpl.rcParamsDefault.items() if _resettable(key)}
    settings: Any = {**defaults, **_settings(), **extra}
    with mpl.rc_context(settings):
        yield


def _resettable(key: str) -> bool:
    return not key.startswith(("backend", "interactive", "toolbar", "webagg", "keymap", "date."))


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Run ``function`` inside :func:`applied`."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        with applied():
            return function(*args, **kwargs)

    return inside


def looks(record: RunRecord) -> dict[str, Look]:
    """Return each treatment's look, by the treatment's place in the record and nothing else."""
    return {
        treatment.name: Look(
            color=PALETTE[index % len(PALETTE)],
            marker=MARKERS[index % len(MARKERS)],
            dashed=index % len(PALETTE) >= 4,
            label=treatment.label or treatment.name,
        )
        for index, treatment in enumerate(record.treatments)
    }


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


def canvas(
    title: str,
    footer: str,
    plot_height_in: float,
    subtitle: str = "",
    key: Sequence[Artist] = (),
) -> LabFigure:
    """Return an empty figure with title and key above, and its origin in small print below.

    The figure grows with its words, so that a long footer takes nothing from the plot. Axes added
    to it are laid out between the two; call :func:`finish` when all artists are in.

    Parameters
    ----------
    title, subtitle, footer : str
        Wrapped to the figure's width; lines of the footer are kept apart.
    plot_height_in : float
        Height left for the axes and their labels.
    key : sequence of Artist
        Legend handles with their labels, set in as many columns as fit.
    """
    head = _head(title, subtitle)
    foot = [line for part in footer.split("\n") for line in wrap(part, FOOTER_PT, TEXT_IN)]
    columns = _columns([str(handle.get_label()) for handle in key])
    key_in = -(-len(key) // columns) * KEY_LINE_IN + MARGIN_IN if key else 0.0
    head_in = sum(_line_in(size) for _, size, _, _ in head) + 1.5 * MARGIN_IN
    foot_in = len(foot) * _line_in(FOOTER_PT) + 1.5 * MARGIN_IN
    height = head_in + key_in + plot_height_in + foot_in
    figure = LabFigure(figsize=(WIDTH_IN, height), dpi=LAYOUT_DPI)
    FigureCanvasAgg(figure)
    rect = (0.0, foot_in / height, 1.0, plot_height_in / height)
    figure.set_layout_engine(
        ConstrainedLayoutEngine(rect=rect, w_pad=MARGIN_IN, h_pad=0.06, wspace=0.04, hspace=0.04)
    )
    _write(figure, head, height - MARGIN_IN)
    _write(figure, [(line, FOOTER_PT, MUTED, "normal") for line in foot], foot_in - MARGIN_IN / 2)
    if key:
        _set_key(figure, key, columns, height - head_in)
    return figure


def _head(title: str, subtitle: str) -> list[Line]:
    head = [(line, TITLE_PT, INK, "bold") for line in wrap(title, TITLE_PT, TEXT_IN, "bold")]
    if subtitle:
        head += [
            (line, SUBTITLE_PT, MUTED, "normal") for line in wrap(subtitle, SUBTITLE_PT, TEXT_IN)
        ]
    return head


def _write(figure: Figure, lines: Sequence[Line], top_in: float) -> None:
    width, height = figure.get_size_inches()
    for text, size, color, weight in lines:
        figure.text(
            MARGIN_IN / width,
            top_in / height,
            text,
            size=size,
            color=color,
            weight=weight,
            va="top",
        )
        top_in -= _line_in(size)


def _columns(labels: Sequence[str]) -> int:
    """Return in how many columns a key of these labels fits the figure's width."""
    widths = np.array([text_width_in(label, KEY_PT) + KEY_HANDLE_IN for label in labels])
    for columns in range(len(widths), 1, -1):
        # matplotlib's legend splits its entries over the columns in this way.
        if sum(column.max() for column in np.array_split(widths, columns)) <= TEXT_IN:
            return columns
    return 1


def _set_key(figure: Figure, key: Sequence[Artist], columns: int, top_in: float) -> None:
    width, height = figure.get_size_inches()
    legend = figure.legend(
        handles=list(key),
        loc="upper left",
        ncols=columns,
        fontsize=KEY_PT,
        bbox_to_anchor=(MARGIN_IN / width, top_in / height),
        borderaxespad=0,
        borderpad=0.1,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.3,
        labelspacing=0.35,
    )
    legend.set_in_layout(False)


def _line_in(size_pt: float) -> float:
    return size_pt * LINE_SPACING / 72


def only_grid(axes: Axes, axis: str) -> None:
    """Keep the grid lines that help to read values off ``axis`` ("x" or "y")."""
    axes.grid(False)
    axes.grid(True, axis="x" if axis == "x" else "y")
    axes.set_axisbelow(True)


def finish(figure: LabFigure) -> LabFigure:
    """Lay the figure out and freeze it: later drawing, at any resolution, moves nothing."""
    engine = figure.get_layout_engine()
    if engine is not None:
        for _ in range(2):
            engine.execute(figure)
    figure.set_layout_engine("none")
    return figure
