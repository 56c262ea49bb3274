"""Charts of rows: a treatment, or anything else that has a name, has a row in each panel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.charts.axes import Axis
from perflab.figures.charts.layers import Layer, highest_of
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page
from perflab.figures.plots.rows import LABEL_WIDTH_IN, Rows
from perflab.figures.theme import MUTED
from perflab.figures.words import tick_label

Words = str | Callable[[pd.DataFrame, Page], str]
LINE_IN, AROUND_IN = 0.155, 0.1
# The column, where a table has it, of how far below the middle of its row something lies.
ASIDE = "aside"


def treatments(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:  # noqa: ARG001
    """Return a row for each treatment of the run, with its label."""
    return {name: look.label for name, look in page.looks.items()}


def nothing_said(_: pd.DataFrame) -> dict[Hashable, str]:
    """Return no words: most rows need no numbers beside them."""
    return {}


@dataclass(frozen=True)
class RowChart:
    """A chart whose panels stand side by side and have the same rows.

    Attributes
    ----------
    title, words : str
        What it shows, and how to read it; ``words`` may be made of the table and the page.
    layers : sequence of Layer
        Drawn in each panel, the first below.
    panels : mapping
        The x axis of each value of the column ``panel``; of one panel the name is "".
    panel, row, value : str
        Columns: a row's panel, the row that it lies in, and its number.
    labels : callable
        The rows of a table and page with their labels, the first on top.
    row_in : float
        How high a row is; higher where its label needs it.
    said : callable
        What is said in numbers at the right of a row, in lines.
    said_at : float
        Where that begins, in widths of the panel.
    nothing : str
        What a row says that has nothing to draw.
    widths : sequence of float
        Of panels, where they differ.
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
    said: Callable[[pd.DataFrame], Mapping[Hashable, str]] = nothing_said
    said_at: float = 1.015
    nothing: str = ""
    widths: Sequence[float] = ()

    def draw(self, table: pd.DataFrame, page: Page) -> LabFigure:
        """Draw a table; where it has no number, say so."""
        if not np.isfinite(table[self.value].astype(float)).any():
            return empty_figure(page, self.title, page.nothing)
        table = table.assign(x=table[self.value])
        rows = self._rows(table, page)
        figure = page_canvas(
            page,
            self.title,
            plot_height_in=0.6 + rows.height_in,
            subtitle=self.words if isinstance(self.words, str) else self.words(table, page),
            key=[handle for layer in self.layers for handle in layer.key(table, page)],
        )
        drawn = figure.subplots(
            1, len(self.panels), sharey=True, squeeze=False, width_ratios=self.widths or None
        )[0]
        for axes, (name, axis) in zip(drawn, self.panels.items(), strict=True):
            own = table[table[self.panel] == name] if len(self.panels) > 1 else table
            places = rows.frame(axes)
            middle, aside = own[self.row].map(places).astype(float), own.get(ASIDE, 0.0)
            own = own.assign(y=middle + aside)
            if axis.is_known:
                axis.apply(axes, "x", highest_of(own, "x"))
            for layer in self.layers:
                layer.draw(axes, own, page)
            for row in places.keys() - set(own[self.row]) if self.nothing else ():
                axes.text(0.01, places[row], self.nothing, va="center", size=7.5, color=MUTED,
                          transform=axes.get_yaxis_transform())  # fmt: skip
            rows.rules(axes)
            axis.apply(axes, "x", highest_of(own, "x"))
            axes.set_xlabel(axis.label)
            only_grid(axes, "x")
        for row in rows.said:
            rows.say(axes, row, self.said_at, places[row], size=7, linespacing=1.25,
                     transform=axes.get_yaxis_transform())  # fmt: skip
        return finish(figure)

    def _rows(self, table: pd.DataFrame, page: Page) -> Rows:
        labels = self.labels(table, page)
        said = {name: words for name, words in self.said(table).items() if name in labels}
        beside = {name: tick_label(label, LABEL_WIDTH_IN) for name, label in labels.items()}
        texts = [*beside.values(), *said.values()]
        lines = max((text.count("\n") + 1 for text in texts), default=1)
        high_in = max(self.row_in, LINE_IN * lines + AROUND_IN)
        return Rows(beside, high_in, said)
