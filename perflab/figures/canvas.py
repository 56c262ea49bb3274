"""An empty figure with words around it: title and key above, origin in small print below."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from perflab.figures.origin import Page
from perflab.figures.theme import INK, MUTED, applied, text_width_in, wrap
from perflab.statistics.in_words import capitalized

# _IN: inches; _PT: sizes of letters, in points.
WIDTH_IN, MARGIN_IN = 7.2, 0.1
TEXT_IN = WIDTH_IN - 2 * MARGIN_IN
TITLE_PT, LABEL_PT, KEY_PT, FOOTER_PT = 11.0, 8.5, 8.0, 6.5
KEY_LINE_IN = 0.158
SUBTITLE_PT = 8.0
KEY_HANDLE_IN = 0.4
LINE_SPACING = 1.3
SCREEN_DPI = 160
LAYOUT_DPI = 100
# The width of the numbers and the label at the side of a panel.
BESIDE_IN = 0.2
# Text, size in points, colour and weight.
Line = tuple[str, float, str, str]
SIZE_PT, LINE_IN = 9.0, 0.15
EMPTY_WIDTH_IN, LEAST_IN, AROUND_IN = 5.5, 1.0, 0.1


def room_in(inches: float, across: int) -> float:
    """Return a length, at most that for which one of so many panels side by side has room."""
    return min(inches, TEXT_IN / across - BESIDE_IN)


class LabFigure(Figure):
    """A figure outside pyplot that still shows itself as a notebook cell's last expression.

    The plots begin ``plot_top_in`` inches above the figure's lower end. ``alternative`` is the text
    for those who do not see it.
    """

    plot_top_in = 0.0
    alternative = ""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        target = io.BytesIO()
        with applied():
            self.savefig(target, format="png", dpi=SCREEN_DPI)
        width_px, height_px = (round(float(inches) * 100) for inches in self.get_size_inches())
        shown = {"width": width_px, "height": height_px, "alt": self.alternative}
        return target.getvalue(), shown


def show_whole(formatter: Any) -> None:
    """Let a notebook's formatter show figures as they are.

    Once pyplot is used, its own formatter for figures would crop them to another size.
    """
    formatter.formatters["image/png"].for_type(LabFigure, LabFigure._repr_png_)


def page_canvas(
    page: Page, title: str, plot_height_in: float, subtitle: str = "", key: Sequence[Artist] = ()
) -> LabFigure:
    """Return an empty figure: title and key above, the origin in small print below.

    The words are wrapped, and the figure grows with them, so a long footer takes nothing from
    ``plot_height_in``. ``key`` holds legend handles with labels of one line. Axes that are added
    lie between key and footer; call :func:`finish` after the last artist.
    """
    head = lines_of(capitalized(title), TEXT_IN, TITLE_PT, INK, "bold")
    head += lines_of(subtitle, TEXT_IN, SUBTITLE_PT, MUTED) if subtitle else []
    foot = []
    for part in page.footer.split("\n"):
        foot += lines_of(part, TEXT_IN, FOOTER_PT, MUTED)
    columns = _columns(key)
    key_in = math.ceil(len(key) / columns) * KEY_LINE_IN + MARGIN_IN if key else 0.0
    head_in = sum(_line_in(size) for _, size, _, _ in head) + 1.5 * MARGIN_IN
    foot_in = len(foot) * _line_in(FOOTER_PT) + 1.5 * MARGIN_IN
    height = head_in + key_in + plot_height_in + foot_in
    figure = LabFigure(figsize=(WIDTH_IN, height), dpi=LAYOUT_DPI)
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        show_whole(shell.display_formatter)
    figure.plot_top_in = foot_in + plot_height_in
    figure.alternative = capitalized(title)
    FigureCanvasAgg(figure)
    rect = (0.0, foot_in / height, 1.0, plot_height_in / height)
    figure.set_layout_engine(
        ConstrainedLayoutEngine(rect=rect, w_pad=MARGIN_IN, h_pad=0.06, wspace=0.04, hspace=0.04)
    )
    _write(figure, head, height - MARGIN_IN)
    _write(figure, foot, foot_in - MARGIN_IN / 2)
    if key:
        _set_key(figure, key, columns, height - head_in)
    return figure


def lines_of(
    text: str, width_in: float, size_pt: float, color: str, weight: str = "normal"
) -> list[Line]:
    """Return a text broken into lines of at most ``width_in`` inches, with their style."""
    return [(line, size_pt, color, weight) for line in wrap(text, size_pt, width_in, weight)]


def _write(figure: LabFigure, lines: Sequence[Line], top_in: float) -> None:
    width, height = figure.get_size_inches()
    for text, size, color, weight in lines:
        style: dict[str, Any] = {"size": size, "color": color, "weight": weight, "va": "top"}
        figure.text(MARGIN_IN / width, top_in / height, text, **style)
        top_in -= _line_in(size)


def _columns(key: Sequence[Artist]) -> int:
    """Return the number of columns in which a key fits the page."""
    labels = [str(handle.get_label()) for handle in key]
    widths = np.array([text_width_in(label, KEY_PT) + KEY_HANDLE_IN for label in labels])
    for columns in range(len(widths), 1, -1):
        # matplotlib's legend splits its entries into columns in this way.
        if sum(column.max() for column in np.array_split(widths, columns)) <= TEXT_IN:
            return columns
    return 1


def _set_key(figure: LabFigure, key: Sequence[Artist], columns: int, top_in: float) -> None:
    width, height = figure.get_size_inches()
    legend = figure.legend(
        handles=list(key), loc="upper left", ncols=columns, fontsize=KEY_PT,
        bbox_to_anchor=(MARGIN_IN / width, top_in / height), borderaxespad=0, borderpad=0.1,
        handlelength=1.6, handletextpad=0.5, columnspacing=1.3, labelspacing=0.35,
    )  # fmt: skip
    legend.set_in_layout(False)


def _line_in(size_pt: float) -> float:
    return size_pt * LINE_SPACING / 72


def only_grid(axes: Axes, axis: str) -> None:
    """Keep only the grid lines at the values of ``axis`` ("x" or "y")."""
    axes.grid(False)
    axes.grid(True, axis="x" if axis == "x" else "y")
    axes.set_axisbelow(True)


def finish(figure: LabFigure) -> LabFigure:
    """Lay the figure out and freeze the layout for drawing at any resolution."""
    engine = figure.get_layout_engine()
    for _ in range(2):
        if engine is not None:
            engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def empty_figure(page: Page, title: str, words: str = "") -> LabFigure:
    """Return a figure without a plot that says why: by default what became of the trials."""
    lines = wrap(words or page.nothing, SIZE_PT, EMPTY_WIDTH_IN)
    figure = page_canvas(page, title, max(LEAST_IN, LINE_IN * len(lines) + AROUND_IN))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, "\n".join(lines), transform=axes.transAxes, ha="center", va="center",
        size=SIZE_PT, color=MUTED,
    )  # fmt: skip
    return finish(figure)
