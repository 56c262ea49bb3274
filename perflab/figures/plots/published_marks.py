"""Published absolutes beside measured ones: a mark for each treatment that one was published of.

A system says which (:data:`Published`). Where a run's load or set-up is another than the published
one, the mark is hollow and its legend says so: such numbers lie beside each other, and compare
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
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
