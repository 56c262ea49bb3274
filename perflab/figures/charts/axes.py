"""An axis of a chart: its words, its scale, and the marks of a logarithmic one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

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
