"""Throughput against load with the fitted scalability law, its band and its peak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from perflab.analysis.curves.scalability_law import Scalability
from perflab.figures.canvas import blank_canvas, finish, only_grid
from perflab.figures.looks import PALETTE
from perflab.figures.theme import INK, MUTED, styled

BAND_ALPHA = 0.18
# Room around the points, as a share of the largest.
ROOM = 1.06


@styled
def draw_scalability(
    table: pd.DataFrame,
    found: Scalability,
    load: str = "load",
    throughput: str = "throughput_rps",
    load_name: str = "load",
    footer: str = "",
) -> Figure:
    """Draw every trial, the fitted law with its band, and the peak with both intervals.

    Parameters
    ----------
    table : DataFrame
        The trials that ``found`` was fitted to.
    found : Scalability
        From :func:`perflab.analysis.curves.scalability_law.scalability`.
    load, throughput : str
        Columns.
    load_name : str
        What the load is, for the axis: "users", "workers".
    footer : str
        Small print, such as :func:`perflab.figures.origin.footer` of the run.
    """
    shown = table[np.isfinite(table[load]) & np.isfinite(table[throughput])]
    words = found.text().replace(" = ", "\u00a0=\u00a0")
    figure = blank_canvas(
        words[:1].upper() + words[1:],
        footer,
        plot_height_in=3.3,
        subtitle=_subtitle(found),
        key=_key(found, len(shown) > 0),
    )
    axes = figure.subplots()
    _draw_fit(axes, found)
    axes.plot(
        shown[load],
        shown[throughput],
        ls="",
        marker="o",
        ms=4.2,
        mfc=PALETTE[0],
        mec="white",
        mew=0.4,
        alpha=0.8,
        zorder=3,
    )
    if found.supported:
        _draw_peak(axes, found)
    if not len(shown):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no trial", transform=axes.transAxes, ha="center", color=MUTED)
        return finish(figure)
    axes.set_xlim(0, ROOM * max(float(shown[load].max()), _high(found.peak_load.high)))
    axes.set_ylim(0, ROOM * max(float(shown[throughput].max()), _high(found.peak_throughput.high)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.set_xlabel(load_name)
    axes.set_ylabel("throughput, successful responses per second")
    only_grid(axes, "y")
    return finish(figure)


def _high(value: float) -> float:
    return value if np.isfinite(value) else 0.0


def _subtitle(found: Scalability) -> str:
    said = f"Every point is one of {found.trials} trials."
    if found.curve:
        said += (
            f" {found.method}: sigma = {found.sigma.text()}, kappa = {found.kappa.text()}"
            f" (n = {found.n})."
        )
    return " ".join([said, *(f"Note: {each}." for each in found.warnings if each != found.reason)])


def _draw_fit(axes: Axes, found: Scalability) -> None:
    if not found.curve:
        return
    places, fitted, low, high = np.array(found.curve).T
    axes.fill_between(places, low, high, color=PALETTE[0], alpha=BAND_ALPHA, lw=0, zorder=1)
    axes.plot(places, fitted, color=PALETTE[0], lw=1.6, zorder=2)


def _draw_peak(axes: Axes, found: Scalability) -> None:
    load, rate = found.peak_load, found.peak_throughput
    axes.errorbar(
        [load.value],
        [rate.value],
        xerr=[[load.value - load.low], [load.high - load.value]],
        yerr=[[rate.value - rate.low], [rate.high - rate.value]],
        color=INK,
        marker="D",
        ms=5,
        lw=1.4,
        capsize=2.5,
        zorder=5,
    )


def _key(found: Scalability, has_points: bool) -> list[Any]:
    handles: list[Any] = []
    if has_points:
        handles.append(Line2D([], [], ls="", marker="o", ms=4.5, color=PALETTE[0], label="trial"))
    if found.curve:
        handles.append(Line2D([], [], color=PALETTE[0], lw=1.6, label="fitted law"))
        band = f"its {found.confidence:.0%} interval at each load"
        handles.append(Patch(fc=PALETTE[0], alpha=BAND_ALPHA, label=band))
    if found.supported:
        label = f"peak with {found.confidence:.0%} intervals"
        handles.append(Line2D([], [], color=INK, marker="D", ms=4.5, lw=1.4, label=label))
    return handles
