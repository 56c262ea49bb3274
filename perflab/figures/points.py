"""Published values beside measured ones, and intervals that end at the edge of the picture.

A treatment with a published value has a mark. A system provides the values (:data:`Published`). If
the load or the set-up of a run is not the published one, the mark is hollow and the legend says so:
the two numbers cannot be compared.

Intervals of few trials may span decades: a t interval of two trials is 12.7 standard errors wide
either way. An axis that showed it whole would show nothing else, so an interval ends in an arrow
where it leaves the picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.theme import PALETTE
from perflab.recordings import Run

ARROWS = {"x": ("<", ">"), "y": ("v", "^")}
ARROW_PT = 3.5
ARROW = "An arrow ends an interval that leaves the picture."


def reach(values: Iterable[float], factor: float) -> tuple[float, float]:
    """Return the range in which intervals are shown: ``factor`` times beyond the values."""
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
    """Draw an interval along one axis, ``at`` a place on the other; nothing if it is NaN.

    An interval that leaves ``within`` ends in an arrow. ``line`` is passed to
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
    for end, end_of_interval, marker in zip(ends, interval, ARROWS[along], strict=True):
        if end != end_of_interval:
            plot([end], ls="", marker=marker, ms=arrow_pt, clip_on=False, gid="arrow", **arrow)


# Columns: treatment, value (NaN if none was published), load (SAME_LOAD or OTHER_LOAD).
Published = Callable[[Run, str], pd.DataFrame]
PUBLISHED = "published"
SAME_LOAD, OTHER_LOAD = "published load", "other load"
COLOR = PALETTE[1]


def nothing_published(_run: Run, _response: str) -> pd.DataFrame:
    """Return no row: most systems have no published values."""
    return pd.DataFrame({"treatment": [], "value": [], "load": []})


def published_mark(load: str, **more: Any) -> Line2D:
    """Return the diamond of a published value, filled if the run has the published load."""
    fill, edge = (COLOR, "white") if load == SAME_LOAD else ("white", COLOR)
    return Line2D([], [], marker="D", ms=5.5, mfc=fill, mec=edge, mew=1.3, ls="", zorder=6,
                  clip_on=False, gid="published", **more)  # fmt: skip


def published_key(table: pd.DataFrame) -> list[Line2D]:
    """Return the legend of the marks that are drawn."""
    words = {SAME_LOAD: "published, same load", OTHER_LOAD: "published; this run: other load"}
    loads = [load for load in words if load in set(table["state"])]
    return [published_mark(load, label=words[load]) for load in loads]
