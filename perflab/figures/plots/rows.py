"""Rows that horizontal plots share: their labels and numbers beside them, or above."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from perflab.figures.looks import Look
from perflab.figures.sheets import Sheet
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.words import text_width_in, tick_label, wrap

LABEL_WIDTH_IN = 1.9
# What ticks, margins and the right end take of a page, roughly: widths are needed before layout.
AROUND_IN = 0.6
# Above a row: sizes of its label and of what is said of it, and the heights of their lines.
LABEL_PT, SAID_PT = 7.5, 7.0
LABEL_LINE_IN, SAID_LINE_IN = 0.132, 0.124
# Between a row and the words of the next, and between a label and what is said beside it.
ABOVE_IN, BETWEEN_IN = 0.05, 0.15
# A row's picture on a narrow sheet, as a share of its height on a page.
LOWER = 0.8
# Left at the right end of narrow axes, and below them for a label of two lines.
EDGE_IN, BELOW_IN = 0.1, 0.1
# Lines of a grid go behind words.
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Line = tuple[str, float, float, str]


@dataclass(frozen=True)
class Rows(Generic[K]):
    """Rows on a sheet, the first on top.

    Attributes
    ----------
    labels : mapping
        Whole; above a row they are broken anew.
    beside : mapping
        The same as they stand beside a row.
    picture_in : float
        How high a row must be for what is drawn in it.
    beside_in : float
        How high it must be where its label is beside it.
    said : mapping
        What is said of rows in numbers, in lines.
    """

    sheet: Sheet
    labels: Mapping[K, str]
    beside: Mapping[K, str]
    picture_in: float
    beside_in: float
    said: Mapping[K, str] = field(default_factory=dict)

    @property
    def height_in(self) -> float:
        """How high all rows are together."""
        if not self.sheet.narrow:
            return len(self.labels) * self.beside_in
        return len(self.labels) * (self._picture_in + self._head_in) + BELOW_IN

    @property
    def plot_in(self) -> float:
        """How wide the axes become, roughly."""
        if self.sheet.narrow:
            return self.sheet.text_in - EDGE_IN
        return self.sheet.width_in - LABEL_WIDTH_IN - AROUND_IN

    def either(self, *, beside: T, above: T) -> T:
        """Return what suits the place of the rows' words."""
        return above if self.sheet.narrow else beside

    def room_in(self, words_in: float) -> float:
        """Return how much room the axes must leave for what is said beside their rows."""
        return self.either(beside=words_in, above=EDGE_IN)

    def frame(self, axes: Axes) -> dict[K, float]:
        """Give ``axes`` its rows; return each one's y, half a unit from both its ends.

        Panels side by side have the same rows: labels stand at the first, or above all of them.
        """
        places = {name: row * self._pitch for row, name in enumerate(self.labels)}
        axes.set_ylim((len(places) - 1) * self._pitch + 0.5, 0.5 - self._pitch)
        shown = [] if self.sheet.narrow else [*self.beside.values()]
        axes.set_yticks([] if self.sheet.narrow else [*places.values()], shown)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.spines["left"].set_visible(False)
        if self.sheet.narrow and _is_first(axes):
            for name, place in places.items():
                self._write_above(axes, name, place)
        return places

    def rules(self, axes: Axes) -> None:
        """Draw a faint line between two rows."""
        for row in range(len(self.labels) - 1):
            axes.axhline(row * self._pitch + 0.5, color=FAINT, lw=0.6, zorder=0)

    def say(self, axes: Axes, name: K, x: float, y: float, **how: Any) -> None:
        """Write what is said of a row beside it; nothing where it stands above it."""
        if not self.sheet.narrow:
            axes.text(x, y, self.said[name], va="center", **how)

    @cached_property
    def _pitch(self) -> float:
        """From one row to the next, in units of y: a row's picture is one unit high."""
        return 1.0 + (self._head_in / self._picture_in if self.sheet.narrow else 0.0)

    @property
    def _picture_in(self) -> float:
        return LOWER * self.picture_in

    @cached_property
    def _head_in(self) -> float:
        heights = [sum(high_in for _, _, high_in, _ in self._above(name)) for name in self.labels]
        return ABOVE_IN + max(heights, default=0.0)

    def _above(self, name: K) -> list[Line]:
        """Return the lines above a row: text, size, height in inches, colour."""
        lines = [(line, LABEL_PT, LABEL_LINE_IN, INK) for line in self._label(name)]
        said = [(line, SAID_PT, SAID_LINE_IN, MUTED) for line in self._numbers(name)]
        return lines if self._on_one_line else [*lines, *said]

    def _label(self, name: K) -> list[str]:
        return wrap(self.labels[name], LABEL_PT, self.sheet.text_in)

    def _numbers(self, name: K) -> list[str]:
        words = self.said.get(name, "").replace("\n[", " [").replace("\n", ", ")
        return wrap(words, SAID_PT, self.sheet.text_in) if words else []

    @cached_property
    def _on_one_line(self) -> bool:
        """Whether what is said of each row has room at the right of its label."""
        return all(
            len(self._numbers(name)) == 1
            and text_width_in(self._label(name)[-1], LABEL_PT)
            + text_width_in(self._numbers(name)[0], SAID_PT)
            + BETWEEN_IN
            <= self.sheet.text_in
            for name in self.said
        )

    def _write_above(self, axes: Axes, name: K, place: float) -> None:
        """Write a row's words over all panels of the figure, down to its upper end."""
        figure = axes.get_figure(root=True)
        assert isinstance(figure, Figure)
        where = blended_transform_factory(figure.transFigure, axes.transData)
        margin = self.sheet.margin_in / self.sheet.width_in
        how: dict[str, Any] = {"va": "bottom", "transform": where, "bbox": BOX}
        y = place - 0.5
        if self.said.get(name) and self._on_one_line:
            (words,) = self._numbers(name)
            figure.text(1 - margin, y, words, size=SAID_PT, color=MUTED, ha="right", **how)
        for text, size, high_in, color in reversed(self._above(name)):
            figure.text(margin, y, text, size=size, color=color, **how)
            y -= high_in / self._picture_in


def _is_first(axes: Axes) -> bool:
    spec = axes.get_subplotspec()
    return spec is None or spec.is_first_col()


def of_looks(
    looks: Mapping[str, Look],
    sheet: Sheet,
    picture_in: float,
    said: Mapping[str, str] | None = None,
) -> Rows[str]:
    """Return a row for each treatment, ``picture_in`` high or as high as its label."""
    labels = {name: look.label for name, look in looks.items()}
    beside = {name: tick_label(label, LABEL_WIDTH_IN) for name, label in labels.items()}
    lines = max((label.count("\n") + 1 for label in beside.values()), default=1)
    beside_in = max(picture_in, 0.155 * lines + 0.1)
    return Rows(sheet, labels, beside, picture_in, beside_in, said or {})
