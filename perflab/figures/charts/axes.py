"""An axis of numbers as data: its label, its scale, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from perflab.figures.plots.milliseconds import log_axis


@dataclass(frozen=True)
class Axis:
    """An axis of numbers.

    It ends at ``ends`` (None: where what is drawn ends), or begins at 0, or the share ``below`` of
    the largest value below it, and ends at ``above`` times that value. ``ticks`` are numbers with
    the words that stand there; otherwise there are as many as have room, or about ``few`` ``whole``
    ones. A ``log`` axis has plain numbers, a ``sparse`` one few of them: at the tens, and at the
    threes where it spans little.
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
        """Whether its ends are known before anything is drawn."""
        return not self.log and (self.below is not None or None not in self.ends)

    def apply(self, axes: Axes, which: Literal["x", "y"], highest: float) -> None:
        """Give ``axes`` this axis; ``highest`` is the largest value that lies along it."""
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
