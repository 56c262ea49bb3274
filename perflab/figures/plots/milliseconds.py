"""Logarithmic axes of times, with plain numbers on them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

# Up to this many decades, 2 and 5 of each are marked; numbers lie flat, so x holds fewer of them.
FEW_DECADES = {"x": 2.2, "y": 3.2}
WITHIN_A_DECADE = 0.8


def log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make ``which`` logarithmic; mark more of each decade the fewer there are."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.dataLim.intervalx if which == "x" else axes.dataLim.intervaly
    if not (np.isfinite(low) and np.isfinite(high) and high > 0):
        axis.set_major_locator(NullLocator())
        return
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    decades = np.log10(high / max(low, high * 1e-9))
    axis.set_major_locator(LogLocator(subs=_marks(decades, FEW_DECADES[which]), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    # Short marks without numbers say that the axis is logarithmic, and where the steps lie.
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=1.8, width=0.6)


def _marks(decades: float, few: float) -> tuple[float, ...]:
    if decades <= WITHIN_A_DECADE:
        return (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    return (1.0, 2.0, 5.0) if decades <= few else (1.0,)


def plain(value: float) -> str:
    """Return a number without an exponent: ``0.05``, ``2``, ``1,000``."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.6f}".rstrip("0").rstrip(".")
