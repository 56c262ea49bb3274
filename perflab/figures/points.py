"""Published absolutes beside measured ones: a mark for each treatment that one was published of.

A system says which (:data:`Published`). Where a run's load or set-up is another than the published
one, the mark is hollow and its legend says so: such numbers lie beside each other, and compare
nothing.

Intervals as far as the picture reaches: of few trials they may span decades.

A t interval of two trials is 12.7 standard errors wide to either side. An axis that shows it whole
shows nothing else, so an interval ends in an arrow where it leaves the picture.
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


# Columns: treatment, value (NaN where none was published), load (SAME_LOAD or OTHER_LOAD).
Published = Callable[[Run, str], pd.DataFrame]
PUBLISHED = "published"
SAME_LOAD, OTHER_LOAD = "published load", "other load"
COLOR = PALETTE[1]


def nothing_published(_run: Run, _response: str) -> pd.DataFrame:
    """Return no row: most systems have no published absolutes."""
    return pd.DataFrame({"treatment": [], "value": [], "load": []})


def published_mark(load: str, **more: Any) -> Line2D:
    """Return the diamond of a published value, filled where the run has the published load."""
    fill, edge = (COLOR, "white") if load == SAME_LOAD else ("white", COLOR)
    return Line2D([], [], marker="D", ms=5.5, mfc=fill, mec=edge, mew=1.3, ls="", zorder=6,
                  clip_on=False, gid="published", **more)  # fmt: skip


def published_key(table: pd.DataFrame) -> list[Line2D]:
    """Return the legend of the marks that are drawn."""
    words = {SAME_LOAD: "published, same load", OTHER_LOAD: "published; this run: other load"}
    loads = [load for load in words if load in set(table["state"])]
    return [published_mark(load, label=words[load]) for load in loads]
