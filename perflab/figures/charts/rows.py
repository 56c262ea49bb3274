"""Charts of rows: each treatment, or other named thing, has a row in each panel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from perflab.figures.canvas import LabFigure, empty_figure, finish, only_grid, page_canvas
from perflab.figures.charts.axes import Axis
from perflab.figures.charts.layers import Layer, highest_of
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, INK, MUTED, tick_label

Words = str | Callable[[pd.DataFrame, Page], str]
Places = Mapping[Hashable, float]
LINE_IN, AROUND_IN, LABEL_IN = 0.155, 0.1, 1.9
# The place of the words beside a row, in widths of the panel.
WORDS_AT = 1.015
# An optional column: how far a mark lies below the middle of its row.
ASIDE = "aside"


def treatments(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:  # noqa: ARG001
    """Return the label of each treatment of the run, as the rows of a chart."""
    return {name: style.label for name, style in page.styles.items()}


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
