"""Charts with two axes of numbers, in one panel or in several: points, lines, distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, room_in
from perflab.figures.charts.axes import Axis
from perflab.figures.charts.layers import Layer, highest_of
from perflab.figures.charts.rows import Words
from perflab.figures.origin import Page
from perflab.figures.theme import MUTED, tick_label

TITLE_PT, TITLE_LINE_IN = 8.0, 0.14
# The name of the only panel, and the panel of rows that are in all panels.
ONLY_PANEL, EVERYWHERE = "", ""


@dataclass(frozen=True)
class Plane:
    """A panel: its axes and its title."""

    x: Axis
    y: Axis
    title: str = ""


@dataclass(frozen=True)
class Planes:
    """A chart of panels that each have two axes of numbers.

    ``title``, ``words`` and ``layers`` are those of
    :class:`~perflab.figures.charts.rows.RowChart`. ``planes`` are the panels by the value of the
    column ``panel``; rows in which it is empty are in every panel, and a single plane shows the
    whole table. ``x`` and ``y`` are the columns of the places. ``across`` panels stand side by
    side; the first row of panels is ``height_in`` inches high, each further row ``further_in``. A
    panel without rows shows ``empty``.
    """

    title: str
    words: Words
    layers: Sequence[Layer]
    planes: Plane | Mapping[str, Plane] | Callable[[pd.DataFrame, Page], Mapping[str, Plane]]
    panel: str = "treatment"
    x: str = "t_s"
    y: str = "value"
    across: int = 2
    height_in: float = 3.3
    further_in: float = 2.6
    share_x: bool | Literal["col"] = False
    share_y: bool | Literal["row"] = False
    grid: Literal["x", "y"] = "y"
    empty: str = "no valid trial"

    def draw(self, table: pd.DataFrame, page: Page) -> LabFigure:
        """Draw a table that has rows."""
        table = table.assign(x=table[self.x], y=table[self.y])
        planes = self._planes(table, page)
        across = min(self.across, len(planes))
        down = math.ceil(len(planes) / across)
        titles = [_title(plane, across) for plane in planes.values()]
        lines = max(title.count("\n") for title in titles)
        height_in = self.height_in + self.further_in * (down - 1)
        figure = page_canvas(
            page,
            self.title,
            plot_height_in=height_in + TITLE_LINE_IN * lines * down,
            subtitle=self.words if isinstance(self.words, str) else self.words(table, page),
            key=[handle for layer in self.layers for handle in layer.key(table, page)],
        )
        panels = figure.subplots(
            down, across, squeeze=False, sharex=self.share_x, sharey=self.share_y
        ).ravel()
        for spare in panels[len(planes) :]:
            spare.remove()
        parts = [table if name == ONLY_PANEL else self._panel_rows(table, name) for name in planes]
        shown = list(zip(panels, parts, planes.values(), strict=False))
        for (axes, rows, _), title in zip(shown, titles, strict=True):
            axes.set_title(title, size=TITLE_PT)
            self._draw(axes, rows, page)
        # All panels that share an axis must be drawn before its ends are known.
        for place, (axes, rows, plane) in enumerate(shown):
            if len(rows):
                plane.x.apply(axes, "x", highest_of(table if self.share_x else rows, "x"))
                plane.y.apply(axes, "y", highest_of(table if self.share_y else rows, "y"))
            # A shared axis is labelled only at the edge of the grid.
            if not self.share_y or place % across == 0:
                axes.set_ylabel(plane.y.label)
            if not self.share_x or place + across >= len(planes):
                axes.set_xlabel(plane.x.label)
                # Without this a panel above a free place would have no numbers.
                axes.tick_params(axis="x", labelbottom=True)
        return finish(figure)

    def _planes(self, table: pd.DataFrame, page: Page) -> Mapping[str, Plane]:
        if isinstance(self.planes, Plane):
            return {ONLY_PANEL: self.planes}
        return self.planes if isinstance(self.planes, Mapping) else self.planes(table, page)

    def _panel_rows(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """Return a panel's rows and those of all panels; none if it has no row of its own."""
        panels = table[self.panel]
        return table[panels.isin([name, EVERYWHERE])] if (panels == name).any() else table.iloc[:0]

    def _draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        if rows.empty:
            if not (self.share_x or self.share_y):
                axes.set_axis_off()
            axes.text(0.5, 0.5, self.empty, transform=axes.transAxes, ha="center", color=MUTED)
            return
        only_grid(axes, self.grid)
        for layer in self.layers:
            layer.draw(axes, rows, page)


def _title(plane: Plane, across: int) -> str:
    """Return the title of a panel, broken into lines of its width."""
    lines, width_in = plane.title.split("\n"), room_in(3.2, across)
    return "\n".join(tick_label(line, width_in, TITLE_PT, 3) for line in lines)
