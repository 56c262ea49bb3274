"""Logarithmic axes of ratios: as wide as what is drawn, with the numbers a reader expects."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from perflab.figures.words import text_width_in

TICK_PT = 8.0
GAP_IN = 0.1
# From the finest to the coarsest; the first that has room for its numbers is taken.
SCALES: tuple[tuple[float, ...], ...] = (
    (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2),
    (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4),
    (0.5, 2 / 3, 0.8, 1, 1.25, 1.5, 2),
    (1 / 4, 1 / 3, 0.5, 2 / 3, 1, 1.5, 2, 3, 4),
    (0.1, 0.2, 0.5, 1, 2, 5, 10),
    (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
    tuple(10.0**power for power in range(-4, 5)),
    tuple(10.0**power for power in range(-12, 13, 4)),
)
# A picture of ratios that are all alike shows at least this much on both sides of 1.
LEAST = 1.1
# An interval of few blocks may span decades; beyond this share of the rest it leaves the picture.
BEYOND = 0.5
PADDING = 0.06


def limits(values: Iterable[float], ends: Iterable[float], least: float) -> tuple[float, float]:
    """Return the ends of an axis that shows all ``values``, and interval ``ends`` near to them.

    On the axis's own scale: pass logarithms of ratios. ``least`` is shown on both sides of 0.
    """
    inside = [value for value in values if math.isfinite(value)]
    low, high = min([-least, *inside]), max([least, *inside])
    reach = BEYOND * (high - low)
    near = [min(max(end, low - reach), high + reach) for end in ends if math.isfinite(end)]
    low, high = min([low, *near]), max([high, *near])
    margin = PADDING * (high - low)
    return low - margin, high + margin


def marks(low: float, high: float, width_in: float) -> list[float]:
    """Return the numbers of an axis from ``low`` to ``high``, as many as its width has room for."""
    inch = math.log(high / low) / width_in
    for scale in SCALES:
        inside = [mark for mark in scale if low <= mark <= high]
        reaches = scale[0] <= low * 1.3 and scale[-1] * 1.3 >= high
        if reaches and _has_room(inside, inch):
            return inside
    return [1.0]


def _has_room(places: list[float], inch: float) -> bool:
    return all(
        (math.log(b) - math.log(a)) / inch
        > (text_width_in(number(a), TICK_PT) + text_width_in(number(b), TICK_PT)) / 2 + GAP_IN
        for a, b in pairwise(places)
    )


def number(ratio: float) -> str:
    """Return a ratio for a reader: ``0.67``, ``1.25``, ``100``."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.3g}"


def ratio_axis(axes: Axes, low: float, high: float, width_in: float) -> None:
    """Make x a logarithmic axis of ratios from ``low`` to ``high``, ``width_in`` inches wide."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    places = marks(low, high, width_in)
    axes.set_xticks(places, [number(each) for each in places])
    axes.xaxis.set_minor_locator(NullLocator())
