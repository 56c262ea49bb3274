"""Bars of a chart of rows: the parts of a row end to end, or below each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.figures.charts.layers import highest_of, key_label, rows_of
from perflab.figures.origin import Page
from perflab.figures.theme import INK, MUTED, luminance, text_width_in
from perflab.figures.view import draw_interval

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
