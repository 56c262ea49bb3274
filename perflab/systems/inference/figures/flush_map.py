"""The map: both published ratios over the flush cost that commits felt, workers and distance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, page_canvas
from perflab.figures.charts.planes import panels_of
from perflab.figures.looks import PALETTE, appearance
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.sheets import grid_of
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.systems.inference.analysis.ratio_map import (
    DRIVER,
    FLUSH,
    INSIDE,
    flush_map,
    is_flush_map,
)

TITLE = "where the published ratios would appear"
# What a commit feels may be nothing; a logarithm needs something.
LEAST_MS = 0.1
PANELS = {FLUSH: "commit off / on, throughput", DRIVER: "asyncpg / psycopg2, throughput"}
CLAIMED = PALETTE[1]
Group = tuple[int, float]


def draw_flush_map(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per ratio: a line per workers and distance, and the published ratio."""
    groups: list[Group] = list(
        dict.fromkeys(
            (int(n), float(ms))
            for n, ms in zip(table["workers"], table["round_trip_ms"], strict=True)
        )
    )
    looks = {group: appearance(place) for place, group in enumerate(groups)}
    grid = grid_of(len(PANELS), across=2)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=3.5 * grid.down,
        subtitle="Every point is one setting, with 95% intervals over blocks both ways. Across:"
        " what a commit felt of the flush and of the pause planted before it (median commit phase,"
        " on less off), not the pause that was set. Large and filled: the published ratio lies in"
        " the interval, and no effect does not.",
        key=_key(looks),
    )
    drawn = panels_of(figure, grid, sharex=True)
    for axes, (name, words) in zip(drawn, PANELS.items(), strict=True):
        _panel(axes, table[table["ratio_of"] == name], looks)
        axes.set_title(words)
    for axes in drawn[-grid.across :]:
        axes.set_xlabel("what a commit felt, ms (log)")
    for axes in drawn[:: grid.across]:
        axes.set_ylabel("ratio of throughputs (log)")
    return finish(figure)


def _panel(axes: Axes, table: pd.DataFrame, looks: Mapping[Group, tuple[str, str]]) -> None:
    axes.axhline(1.0, color=MUTED, lw=1.0, zorder=1)
    for published in table["published"].dropna().unique()[:1]:
        axes.axhline(float(published), color=CLAIMED, lw=1.2, ls="--", zorder=1, gid="published")
    for (workers, distance), (color, marker) in looks.items():
        own = table[(table["workers"] == workers) & (table["round_trip_ms"] == distance)]
        own = own[own["ratio"].notna() & own["felt_ms"].notna()].sort_values("felt_ms")
        at = own["felt_ms"].clip(lower=LEAST_MS)
        axes.plot(at, own["ratio"], color=color, lw=0.9, alpha=0.6, zorder=2)
        for row in own.to_dict("records"):
            _point(axes, row, color, marker)
    log_axis(axes, "x")
    _ratio_axis(axes)
    axes.grid(True, color=FAINT, lw=0.6)


def _point(axes: Axes, row: Mapping[Hashable, Any], color: str, marker: str) -> None:
    x, y = max(LEAST_MS, float(row["felt_ms"])), float(row["ratio"])
    if math.isfinite(float(row["low"])):
        axes.plot([x, x], [row["low"], row["high"]], color=color, lw=1.1, zorder=3, gid="interval")
    if math.isfinite(float(row["felt_low"])):
        ends = [max(LEAST_MS, float(row[name])) for name in ("felt_low", "felt_high")]
        axes.plot(ends, [y, y], color=color, lw=0.7, alpha=0.7, zorder=3)
    inside = row["published_is"] == INSIDE
    axes.plot([x], [y], marker=marker, ms=7 if inside else 4.5, mec=color, mew=1.2, ls="",
              mfc=color if inside else "white", zorder=4)  # fmt: skip


def _ratio_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    marks = [0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]
    shown = [mark for mark in marks if low <= mark <= high]
    axes.set_yticks(shown, [f"{mark:g}" for mark in shown])
    axes.set_yticks([], minor=True)
    axes.set_ylim(min(low, 0.9), max(high, 1.1))


def _key(looks: Mapping[Group, tuple[str, str]]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=color, marker=marker, ms=5, lw=0.9, mfc="white",
               label=f"{workers} worker{'' if workers == 1 else 's'}, {distance:g} ms away")
        for (workers, distance), (color, marker) in looks.items()
    ]  # fmt: skip
    return [
        *handles,
        Line2D([], [], color=CLAIMED, lw=1.2, ls="--", label="published"),
        Line2D([], [], color=MUTED, lw=1.0, label="no effect"),
        Line2D([], [], ls="", marker="o", ms=7, color=INK, label="published in the interval"),
    ]


FLUSH_MAP = View("flush_map", TITLE, flush_map, draw_flush_map, suits=is_flush_map)
