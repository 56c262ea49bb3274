"""Charts of rows: each treatment, or other named thing, has a row in each panel.

Bars are layers of such a chart: the parts of a row end to end, or below each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from perflab.figures.canvas import LabFigure, empty_figure, finish, only_grid, page_canvas
from perflab.figures.charts.layers import Layer, highest_of, key_label, rows_of
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, INK, MUTED, luminance, text_width_in, tick_label
from perflab.figures.view import draw_interval

# Up to this many decades 2 and 5 are marked too; x has room for fewer numbers than y.
FEW_DECADES = {"x": 2.2, "y": 3.2}
WITHIN_A_DECADE = 0.8
# In decades: values that differ by about a third, or by a factor of two, at most.
A_TENTH, A_THIRD = 0.12, 0.33
FINE = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)
# If the largest value is less than this many times the smallest, the axis is widened: otherwise
# all its numbers would be the same.
LEAST = 1.05


def log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make ``which`` logarithmic, with more marks per decade the fewer decades there are.

    Panels that share the axis share its marks, which depend on the values of all of them.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = _range_drawn(axes, which)
    if not (np.isfinite(low) and np.isfinite(high) and high > 0):
        axis.set_major_locator(NullLocator())
        return
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if high < low * LEAST:
        (axes.set_xlim if which == "x" else axes.set_ylim)(low / LEAST, high * LEAST)
    decades = np.log10(high / max(low, high * 1e-9))
    marks = LogLocator(subs=_marks(decades, FEW_DECADES[which]), numticks=20)
    axis.set_major_locator(MaxNLocator(5) if decades <= A_TENTH else marks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    # Short marks without numbers show that the axis is logarithmic.
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=1.8, width=0.6)


def _range_drawn(axes: Axes, which: Literal["x", "y"]) -> tuple[float, float]:
    """Return the smallest and largest value in all panels that share the axis."""
    shared = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    panels = shared.get_siblings(axes)
    ends = np.array([getattr(panel.dataLim, f"interval{which}") for panel in panels])
    ends = ends[np.isfinite(ends).all(axis=1)]
    return (float(ends.min()), float(ends.max())) if len(ends) else (np.inf, -np.inf)


def _marks(decades: float, few: float) -> tuple[float, ...]:
    if decades <= A_THIRD:
        return FINE
    if decades <= WITHIN_A_DECADE:
        return (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    return (1.0, 2.0, 5.0) if decades <= few else (1.0,)


def plain(value: float) -> str:
    """Return a number without an exponent: ``0.05``, ``2``, ``15.5``, ``1,000``."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 6}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Axis:
    """An axis of numbers.

    It ends at ``ends`` (None: where the data end). With ``below`` it begins that share of the
    largest value below 0, and ends at ``above`` times that value. ``ticks`` are numbers with their
    words; without them there are as many numbers as have room, or about ``few`` ``whole`` ones. A
    ``log`` axis has plain numbers. A ``sparse`` log axis has numbers only at powers of ten, and at
    three times these if it spans little.
    """

    label: str = ""
    log: bool = False
    ends: tuple[float | None, float | None] = (None, None)
    below: float | None = None
    above: float = 1.08
    ticks: Mapping[float, str] = field(default_factory=dict)
    whole: bool = False
    few: int = 5
    sparse: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the ends are known before anything is drawn."""
        return not self.log and (self.below is not None or None not in self.ends)

    def apply(self, axes: Axes, which: Literal["x", "y"], highest: float) -> None:
        """Set scale, limits and ticks of an axis of ``axes``.

        ``highest`` is the largest value along it; ``below`` and ``above`` are shares of it.
        """
        axis, limits = (axes.xaxis, axes.set_xlim) if which == "x" else (axes.yaxis, axes.set_ylim)
        if self.log:
            log_axis(axes, which)
        if self.log and self.sparse:
            low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
            axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 40 * low else (1.0,)))
        if self.below is not None:
            most = highest if np.isfinite(highest) and highest > 0 else 1.0
            limits(-self.below * most, self.above * most)
        elif self.ends != (None, None):
            limits(*self.ends)
        if self.ticks:
            axis.set_ticks([*self.ticks], [*self.ticks.values()])
        elif self.whole:
            axis.set_major_locator(MaxNLocator(self.few, integer=True))
            axis.set_major_formatter("{x:,.0f}")


Words = str | Callable[[pd.DataFrame, Page], str]
Places = Mapping[Hashable, float]
LINE_IN, AROUND_IN, LABEL_IN = 0.155, 0.1, 1.9
# The place of the words beside a row, in widths of the panel.
WORDS_AT = 1.015
# An optional column: how far a mark lies below the middle of its row.
ASIDE = "aside"


def treatments(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:  # noqa: ARG001
    """Return the label of each treatment of the run, as the rows of a chart."""
    return {name: look.label for name, look in page.looks.items()}


@dataclass(frozen=True)
class RowChart:
    """A chart whose panels stand side by side and have the same rows.

    ``words`` say how to read the chart; they may depend on the table and the page. ``panels`` has
    the x axis of each value of the column ``panel`` (a single panel has the name ""). ``labels``
    returns the rows, the first on top, with the labels at their left. ``row`` and ``value`` are the
    columns of a row's name and number. A row is at least ``row_in`` inches high. ``said`` returns
    the words at the right of rows, and ``nothing`` stands in a row without data.
    """

    title: str
    words: Words
    layers: Sequence[Layer]
    panels: Mapping[str, Axis] = field(default_factory=lambda: {"": Axis()})
    panel: str = "panel"
    row: str = "treatment"
    value: str = "value"
    labels: Callable[[pd.DataFrame, Page], Mapping[Hashable, str]] = treatments
    row_in: float = 0.34
    said: Callable[[pd.DataFrame], Mapping[Hashable, str]] = lambda _: {}
    nothing: str = ""

    def draw(self, table: pd.DataFrame, page: Page) -> LabFigure:
        """Draw a table; without a number in it the figure says so."""
        if not np.isfinite(table[self.value].astype(float)).any():
            return empty_figure(page, self.title, page.nothing)
        table = table.assign(x=table[self.value])
        labels = self.labels(table, page)
        right = {name: words for name, words in self.said(table).items() if name in labels}
        left = {name: tick_label(label, LABEL_IN) for name, label in labels.items()}
        texts = [*left.values(), *right.values()]
        lines = max((text.count("\n") + 1 for text in texts), default=1)
        figure = page_canvas(
            page,
            self.title,
            plot_height_in=0.6 + len(labels) * max(self.row_in, LINE_IN * lines + AROUND_IN),
            subtitle=self.words if isinstance(self.words, str) else self.words(table, page),
            key=[handle for layer in self.layers for handle in layer.key(table, page)],
        )
        places = {name: float(row) for row, name in enumerate(labels)}
        drawn = figure.subplots(1, len(self.panels), sharey=True, squeeze=False)[0]
        for axes, (name, axis) in zip(drawn, self.panels.items(), strict=True):
            rows = table[table[self.panel] == name] if len(self.panels) > 1 else table
            middle = rows[self.row].map(places).astype(float)
            _frame(axes, left)
            self._draw_panel(axes, axis, rows.assign(y=middle + rows.get(ASIDE, 0.0)), page, places)
        for row, words in right.items():
            axes.text(WORDS_AT, places[row], words, va="center", size=7, linespacing=1.25,
                      transform=axes.get_yaxis_transform())  # fmt: skip
        return finish(figure)

    def _draw_panel(
        self, axes: Axes, axis: Axis, rows: pd.DataFrame, page: Page, places: Places
    ) -> None:
        highest = highest_of(rows, "x")
        if axis.is_known:
            axis.apply(axes, "x", highest)
        for layer in self.layers:
            layer.draw(axes, rows, page)
        missing = [name for name in places if name not in set(rows[self.row])]
        for name in missing if self.nothing else ():
            axes.text(0.01, places[name], self.nothing, va="center", size=7.5, color=MUTED,
                      transform=axes.get_yaxis_transform())  # fmt: skip
        for place in range(len(places) - 1):
            axes.axhline(place + 0.5, color=FAINT, lw=0.6, zorder=0)
        axis.apply(axes, "x", highest)
        axes.set_xlabel(axis.label)
        only_grid(axes, "x")


def _frame(axes: Axes, labels: Mapping[Hashable, str]) -> None:
    """Give ``axes`` its rows, each one unit high, the first on top."""
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), [*labels.values()])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)


STACK_PT, STACK_IN = 7.2, 2.9
# The share of a row's height that its bars take together.
BARS_HIGH = 0.8


@dataclass(frozen=True)
class Stack:
    """The parts of a row end to end from 0, in the order of ``colors``.

    ``labels`` are the parts' labels in the key, by default their names. ``words`` returns the words
    in a part, if the part has room for them.
    """

    colors: Mapping[str, str]
    by: str = "part"
    of: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    words: Callable[[float], str] | None = None
    height: float = 0.6
    at: float = 0.0
    alpha: float = 1.0
    keyed: bool = True

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the rows of one panel."""
        shown = rows_of(rows, self.of)
        shown = shown[shown[self.by].isin(self.colors) & (shown["x"] > 0)]
        # A panel of rows is at least this wide; its axis already has its ends.
        inch = float(np.ptp(axes.get_xlim())) / STACK_IN
        for y in shown["y"].unique():
            parts, place, left = shown[shown["y"] == y], float(y) + self.at, 0.0
            values = dict(zip(parts[self.by], parts["x"], strict=True))
            for name in (part for part in self.colors if part in values):
                axes.barh(place, values[name], left=left, height=self.height, edgecolor="white",
                          lw=0.6, color=self.colors[name], alpha=self.alpha)  # fmt: skip
                self._write(axes, left + values[name] / 2, place, values[name], name, inch)
                left += values[name]

    def _write(self, axes: Axes, x: float, y: float, value: float, name: str, inch: float) -> None:
        """Write the words of a part into it, if it has room."""
        words = self.words(value) if self.words else ""
        if words and value > (text_width_in(words, STACK_PT) + 0.04) * inch:
            dark = luminance(self.colors[name]) < 0.55
            axes.text(x, y, words, size=STACK_PT, ha="center", va="center",
                      color="white" if dark else INK)  # fmt: skip

    def key(self, table: pd.DataFrame, page: Page) -> list[Patch]:  # noqa: ARG002
        """Return a patch for each part that occurs."""
        shown = rows_of(table, self.of)
        named = set(shown.loc[shown["x"] > 0, self.by]) if self.keyed else set()
        return [
            Patch(fc=color, label=self.labels.get(name, name))
            for name, color in self.colors.items()
            if name in named
        ]


@dataclass(frozen=True)
class Bars:
    """Bars below each other in a row, in the order of ``colors``, with intervals and numbers.

    ``missing`` stands in the place of a bar that a row lacks; intervals end at ``within``.
    """

    colors: Mapping[str, str]
    words: Callable[[float], str]
    by: str = "part"
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    within: tuple[float, float] = (0.0, math.inf)

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the rows of one panel."""
        height = BARS_HIGH / len(self.colors)
        most = highest_of(rows, "x")
        for y in rows["y"].dropna().unique():
            bars = {str(row[self.by]): row for row in rows[rows["y"] == y].to_dict("records")}
            for number, (name, color) in enumerate(self.colors.items()):
                place = float(y) + (number + 0.5) * height - BARS_HIGH / 2
                if name in bars:
                    self._bar(axes, bars[name], place, color, most)
                elif self.missing:
                    axes.text(0.01 * most, place, self.missing, size=7, va="center", color=MUTED)

    def _bar(
        self, axes: Axes, row: Mapping[Hashable, Any], place: float, color: str, most: float
    ) -> None:
        value, low, high = (float(row[name]) for name in ("x", "low", "high"))
        height = BARS_HIGH / len(self.colors) * 0.86
        axes.barh(place, value, height=height, color=color, edgecolor=MUTED, lw=0.3)
        draw_interval(axes, (low, high), place, self.within, color=INK, lw=1.1, zorder=4,
                      gid="interval")  # fmt: skip
        words, right = self.words(value), value
        if math.isfinite(low):
            words = f"{words} [{self.words(low)}, {self.words(high)}]"
            right = max(value, min(high, self.within[1]))
        axes.text(right + 0.015 * most, place, words, size=7, va="center")

    def key(self, table: pd.DataFrame, page: Page) -> list[Patch]:  # noqa: ARG002
        """Return a patch for each part."""
        return [
            Patch(fc=color, ec=MUTED, lw=0.4, label=key_label(self.labels.get(name, name)))
            for name, color in self.colors.items()
        ]
