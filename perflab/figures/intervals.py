"""Intervals as far as the picture reaches: of few trials they may span decades.

A t interval of two trials is 12.7 standard errors wide to either side. An axis that shows it whole
shows nothing else, so an interval ends in an arrow where it leaves the picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

ARROWS = {"x": ("<", ">"), "y": ("v", "^")}
ARROW_PT = 3.5
ARROW = "An arrow ends an interval that leaves the picture."


def reach(values: Iterable[float], factor: float) -> tuple[float, float]:
    """Return how far intervals are shown: ``factor`` times beyond the values they are about."""
    inside = [value for value in values if math.isfinite(value)]
    return (min(inside) / factor, max(inside) * factor) if inside else (-math.inf, math.inf)


def draw_interval(
    axes: Axes,
    interval: tuple[float, float],
    at: float,
    within: tuple[float, float],
    along: Literal["x", "y"] = "x",
    arrow_pt: float = ARROW_PT,
    **line: Any,
) -> None:
    """Draw an interval along an axis, ``at`` so much on the other; nothing where it is NaN.

    Beyond ``within`` it is not shown and ends in an arrow. ``line`` is for
    :meth:`matplotlib.axes.Axes.plot`.
    """
    if any(map(math.isnan, interval)):
        return
    ends = np.clip(interval, *within).tolist()

    def plot(places: list[float], **how: Any) -> None:
        across = [at] * len(places)
        axes.plot(*((places, across) if along == "x" else (across, places)), **how)

    plot(ends, **line)
    arrow = {"color": line.get("color"), "zorder": line.get("zorder", 2) + 0.1}
    for end, full, marker in zip(ends, interval, ARROWS[along], strict=True):
        if end != full:
            plot([end], ls="", marker=marker, ms=arrow_pt, clip_on=False, gid="arrow", **arrow)
