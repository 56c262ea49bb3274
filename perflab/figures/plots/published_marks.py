"""Published absolutes beside measured ones: a mark for each treatment that one was published of.

A system says which (:data:`Published`). Where a run's load or set-up is another than the published
one, the mark is hollow and its legend says so: such numbers lie beside each other, and compare
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.looks import PALETTE
from perflab.recordings import Run

# Columns: treatment, value (NaN where none was published), load (SAME_LOAD or OTHER_LOAD).
Published = Callable[[Run, str], pd.DataFrame]
PUBLISHED = "published"
SAME_LOAD, OTHER_LOAD = "published load", "other load"
COLOR = PALETTE[1]


def nothing_published(_run: Run, _response: str) -> pd.DataFrame:
    """Return no row: most systems have no published absolutes."""
    return pd.DataFrame({"treatment": [], "value": [], "load": []})


def draw_published(
    axes: Axes, table: pd.DataFrame, column: str, places: Mapping[str, float]
) -> None:
    """Draw a diamond at every published value; ``places`` are the heights by treatment."""
    for each in table.to_dict("records"):
        name = str(each["treatment"])
        if name in places and np.isfinite(each[column]):
            fill, edge = (COLOR, "white") if each["state"] == SAME_LOAD else ("white", COLOR)
            axes.plot([each[column]], [places[name]], marker="D", ms=5.5, mfc=fill, mec=edge,
                      mew=1.3, ls="", zorder=6, clip_on=False, gid="published")  # fmt: skip


def published_key(table: pd.DataFrame) -> list[Line2D]:
    """Return the legend of the marks that are drawn."""
    words = {SAME_LOAD: "published, same load", OTHER_LOAD: "published; this run: other load"}
    return [
        Line2D([], [], ls="", marker="D", ms=5.5, mfc=COLOR if load == SAME_LOAD else "white",
               mec=COLOR, mew=1.3, label=label)
        for load, label in words.items()
        if load in set(table["state"])
    ]  # fmt: skip
