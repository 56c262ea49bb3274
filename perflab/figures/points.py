"""Points in the looks of what they belong to, hollow where a trial does not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from perflab.figures.looks import Look

VALID = "valid"
# Points that do not count hide none that do.
ZORDER, BELOW = 3.0, 0.1


def draw_points(
    axes: Axes, points: pd.DataFrame, x: str, y: str, by: str, looks: Mapping[str, Look], **how: Any
) -> None:
    """Draw a row of ``points`` as a point, in the look of what it is of.

    Parameters
    ----------
    x, y : str
        Columns of numbers; rows without both are left out.
    by : str
        The column that names a look; rows of none are left out.
    **how
        For :func:`seaborn.scatterplot`, over what is set here. With a column ``state``, points
        other than ``valid`` are hollow, and lie below those that are.
    """
    finite = np.isfinite(points[[x, y]].to_numpy(float)).all(axis=1)
    shown = points.loc[finite]
    if "state" not in shown:
        _scatter(axes, shown, x, y, by, looks, **how)
        return
    valid = shown["state"].eq(VALID)
    if not valid.all():
        below = {**how, "zorder": how.get("zorder", ZORDER) - BELOW}
        before = len(axes.collections)
        _scatter(axes, shown.loc[~valid], x, y, by, looks, **below)
        for drawn in axes.collections[before:]:
            drawn.set(edgecolors=drawn.get_facecolor(), facecolors="white", linewidths=1.0)
    _scatter(axes, shown.loc[valid], x, y, by, looks, **how)


def _scatter(
    axes: Axes, points: pd.DataFrame, x: str, y: str, by: str, looks: Mapping[str, Look], **how: Any
) -> None:
    names = [name for name in looks if name in set(points[by])]
    if not names:
        return
    settings: dict[str, Any] = {"s": 20, "edgecolor": "white", "linewidth": 0.3, "zorder": ZORDER}
    # The plots name their axes themselves.
    named = {"xlabel": axes.get_xlabel(), "ylabel": axes.get_ylabel()}
    sns.scatterplot(
        points, x=x, y=y, hue=by, style=by, hue_order=names, style_order=names, legend=False,
        palette={name: looks[name].color for name in names},
        markers={name: looks[name].marker for name in names},
        ax=axes, **{**settings, **how},
    )  # fmt: skip
    axes.set(**named)
