"""Rows that horizontal plots share: their labels at the left, what is said of them at the right."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

from perflab.figures.theme import FAINT, INK

LABEL_WIDTH_IN = 1.9


@dataclass(frozen=True)
class Rows:
    """Rows of a chart, the first on top.

    Attributes
    ----------
    labels : mapping
        As they stand beside a row, in lines.
    row_in : float
        How high a row is.
    said : mapping
        What is said of rows in numbers, in lines.
    """

    labels: Mapping[Hashable, str]
    row_in: float
    said: Mapping[Hashable, str] = field(default_factory=dict)

    @property
    def height_in(self) -> float:
        """How high all rows are together."""
        return len(self.labels) * self.row_in

    def frame(self, axes: Axes) -> dict[Hashable, float]:
        """Give ``axes`` its rows; return each one's y, half a unit from both its ends."""
        places = {name: float(row) for row, name in enumerate(self.labels)}
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.set_yticks([*places.values()], [*self.labels.values()])
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.spines["left"].set_visible(False)
        return places

    def rules(self, axes: Axes) -> None:
        """Draw a faint line between two rows."""
        for row in range(len(self.labels) - 1):
            axes.axhline(row + 0.5, color=FAINT, lw=0.6, zorder=0)

    def say(self, axes: Axes, name: Hashable, x: float, y: float, **how: Any) -> None:
        """Write what is said of a row beside it."""
        axes.text(x, y, self.said[name], va="center", **how)
