"""Latency against CPU with the fitted knee, where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perflab.analysis.knee import Knee
from perflab.figures.canvas import TEXT_IN, canvas, finish, only_grid
from perflab.figures.looks import MARKERS, PALETTE
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import FAINT, INK, MUTED, styled
from perflab.figures.words import tick_label

# Heavy tails would press everything else to the floor.
SHOWN_SHARE = 0.998
LARGEST_KEY = 8


@styled
def knee_curve(
    table: pd.DataFrame,
    found: Knee,
    cpu: str,
    latency: str = "p50_ms",
    color_by: str = "treatment",
    footer: str = "",
) -> Figure:
    """Draw every window, the fitted curve, and the knee with its interval as a band.

    Parameters
    ----------
    table : DataFrame
        The windows that ``found`` was fitted to.
    found : Knee
        From :func:`perflab.analysis.knee.knee`.
    cpu, latency, color_by : str
        Columns; ``color_by`` gives each of its values a colour, up to eight of them.
    footer : str
        Small print, such as :func:`perflab.figures.origin.footer` of the run.
    """
    shown = table[np.isfinite(table[cpu]) & (table[latency] > 0) & np.isfinite(table[latency])]
    groups = list(pd.unique(shown[color_by])) if color_by in shown else []
    looks = _looks(groups)
    words = found.words()
    figure = canvas(
        words[:1].upper() + words[1:],
        footer,
        plot_height_in=3.4,
        subtitle=_subtitle(found),
        key=_key(found, looks, has_points=len(shown) > 0),
    )
    axes = figure.subplots()
    if found.supported:
        axes.axvspan(100 * found.low, 100 * found.high, color=FAINT, lw=0, zorder=0)
        axes.axvline(100 * found.cpu, color=INK, lw=1.2, ls=(0, (4, 2)), zorder=2.5)
    if groups and looks:
        for group in groups:
            _draw_points(axes, shown[shown[color_by] == group], cpu, latency, looks[str(group)])
    else:
        _draw_points(axes, shown, cpu, latency, {"color": PALETTE[0], "marker": MARKERS[0]})
    if found.curve:
        places, fitted = np.array(found.curve).T
        axes.plot(100 * places, fitted, color=INK, lw=1.8, zorder=4)
    _frame(axes, shown[latency].to_numpy(float))
    axes.set_xlabel("CPU use, % of a core")
    axes.set_ylabel("response time per window, ms (log)")
    return finish(figure)


def _subtitle(found: Knee) -> str:
    n = found.unit or f"{found.n} trials"
    windows = f"Every point is a window; n = {n}, {found.windows:,} windows."
    said = f"{windows} Curve: {found.shape}. Knee: {found.method}." if found.curve else windows
    return " ".join([said, *(f"Note: {each}." for each in found.warnings if each != found.reason)])


def _looks(groups: list[Any]) -> dict[str, dict[str, str]]:
    if len(groups) > LARGEST_KEY:
        return {}
    return {
        str(group): {"color": PALETTE[number], "marker": MARKERS[number]}
        for number, group in enumerate(groups)
    }


def _draw_points(
    axes: Axes, points: pd.DataFrame, cpu: str, latency: str, look: dict[str, str]
) -> None:
    axes.plot(
        100 * points[cpu],
        points[latency],
        ls="",
        marker=look["marker"],
        ms=3.2,
        mfc=look["color"],
        mec="white",
        mew=0.3,
        alpha=0.6,
        zorder=2,
    )


def _frame(axes: Axes, values: np.ndarray) -> None:
    if not len(values):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no window", transform=axes.transAxes, ha="center", color=MUTED)
        return
    log_axis(axes, "y")
    low, high = np.quantile(values, [1 - SHOWN_SHARE, SHOWN_SHARE])
    axes.set_ylim(low / 1.15, high * 1.15)
    axes.set_xlim(left=0)
    only_grid(axes, "y")


def _key(found: Knee, looks: dict[str, dict[str, str]], has_points: bool) -> list[Any]:
    handles: list[Any] = [
        Line2D(
            [],
            [],
            ls="",
            ms=4.5,
            marker=look["marker"],
            mfc=look["color"],
            mec="white",
            mew=0.3,
            label=tick_label(name, TEXT_IN - 0.6, 8, lines=1),
        )
        for name, look in looks.items()
        if has_points
    ]
    if found.curve:
        handles.append(Line2D([], [], color=INK, lw=1.8, label=f"fitted {found.shape}"))
    if found.supported:
        handles.append(Line2D([], [], color=INK, lw=1.2, ls=(0, (4, 2)), label="knee"))
        handles.append(Patch(fc=FAINT, label=f"its {found.confidence:.0%} interval"))
    return handles
