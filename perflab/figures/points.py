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


def draw_points(
    axes: Axes, points: pd.DataFrame, x: str, y: str, by: str, looks: Mapping[str, Look], **how: Any
) -> None:
    """Draw a row of ``points`` as a point, in the look of what it is of.

    Parameters
    ----------
    x, y : str
        Columns of numbers; rows without both are left out.
    by : str
        The column that names a look.
    **how
        For :func:`seaborn.scatterplot`, over what is set here. With a column ``state``, points
        other than ``valid`` are hollow.
    """
    finite = np.isfinite(points[[x, y]].to_numpy(float)).all(axis=1)
    shown = points.loc[finite]
    if "state" not in shown:
        _scatter(axes, shown, x, y, by, looks, **how)
        return
    valid = shown["state"].eq(VALID)
    _scatter(axes, shown.loc[valid], x, y, by, looks, **how)
    _scatter(axes, shown.loc[~valid], x, y, by, looks, **how)
    if not valid.all():
        last = axes.collections[-1]
        last.set(edgecolors=last.get_facecolor(), facecolors="white", linewidths=1.0)


def _scatter(
    axes: Axes, points: pd.DataFrame, x: str, y: str, by: str, looks: Mapping[str, Look], **how: Any
) -> None:
    if points.empty:
        return
    names = [name for name in looks if name in set(points[by])]
    settings: dict[str, Any] = {"s": 20, "edgecolor": "white", "linewidth": 0.3, "zorder": 3}
    # The plots name their axes themselves.
    named = {"xlabel": axes.get_xlabel(), "ylabel": axes.get_ylabel()}
    sns.scatterplot(
        points, x=x, y=y, hue=by, style=by, hue_order=names, style_order=names, legend=False,
        palette={name: looks[name].color for name in names},
        markers={name: looks[name].marker for name in names},
        ax=axes, **{**settings, **how},
    )  # fmt: skip
    axes.set(**named)
