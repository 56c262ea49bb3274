"""Time and bytes per message of every codec, by operation and message."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.codec_costs import cost_table, is_of_codecs

STEPS = ("serialize", "deserialize")
BYTES = "bytes"
VALUES = "_values"
TITLE = "what one message costs each codec, and how long it gets"
COLUMNS = ["codec", "operation", "message", "bytes", "us", "low", "high"]
ROW_IN = 0.27
ABOVE, BELOW = -0.17, 0.17
MARGIN, BEYOND = 1.25, 4.0


def codec_cost_table(run: Run) -> pd.DataFrame:
    """Return us per operation with its interval, and bytes, per codec, operation and message."""
    return cost_table(run)[COLUMNS].dropna(subset=["us"])


def draw_codec_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each codec's time per operation and its bytes, a row per message."""
    codecs, messages = list(table["codec"].unique()), list(table["message"].unique())
    steps = [s for s in STEPS if table["operation"].isin([s, s + VALUES]).any()]
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=len(messages) * (0.75 + ROW_IN * len(codecs)),
        subtitle="Median over trials (below 6: geometric mean), each the median of its repetitions;"
        " bars are 95% intervals (an arrow: they go on). Hollow: the same work "
        "for all codecs, from and to plain values (protobuf's own deserialize leaves reading the "
        "fields for later).",
        key=_key(),
    )
    widths = [1.0] * len(steps) + [0.62]
    grid = figure.subplots(
        len(messages), len(widths), squeeze=False, width_ratios=widths, sharey=True
    )
    for row, message in enumerate(messages):
        own = table[table["message"] == message]
        for axes, step in zip(grid[row], steps, strict=False):
            costs = own[own["operation"].isin([step, step + VALUES])]
            _draw_times(axes, costs, codecs, reach(own["us"], BEYOND))
            axes.set_title(f"{message}: {step}")
        _same_range(list(grid[row][: len(steps)]))
        _draw_bytes(grid[row][-1], own.drop_duplicates("codec"), codecs)
        grid[row][-1].set_title(f"{message}: {BYTES}")
        _name_rows(grid[row][0], codecs)
    for axes in grid[-1][: len(steps)]:
        axes.set_xlabel("us per operation (log)")
    grid[-1][-1].set_xlabel("bytes per message")
    return finish(figure)


def _draw_times(
    axes: Axes, costs: pd.DataFrame, codecs: list[str], within: tuple[float, float]
) -> None:
    for cost in costs.to_dict("records"):
        place = codecs.index(str(cost["codec"]))
        color = PALETTE[place % len(PALETTE)]
        plain = not str(cost["operation"]).endswith(VALUES)
        y = place + (ABOVE if plain else BELOW)
        draw_interval(axes, (cost["low"], cost["high"]), y, within, color=color, lw=2.2, zorder=2)
        axes.plot(
            [cost["us"]],
            [y],
            marker="o",
            ms=5,
            mfc=color if plain else "white",
            mec=color,
            zorder=3,
        )
    only_grid(axes, "x")


def _same_range(panels: list[Axes]) -> None:
    """Give the steps of one message one axis, so that they can be compared by eye."""
    ends = [axes.dataLim.intervalx for axes in panels]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if not low < high < math.inf:
        return
    for axes in panels:
        axes.dataLim.intervalx = (low, high)
        log_axis(axes, "x")
        axes.set_xlim(low / MARGIN, high * MARGIN)


def _draw_bytes(axes: Axes, costs: pd.DataFrame, codecs: list[str]) -> None:
    longest = float(costs["bytes"].max())
    for codec, size in zip(costs["codec"], costs["bytes"], strict=True):
        place = codecs.index(str(codec))
        axes.barh(place, size, height=0.55, color=PALETTE[place % len(PALETTE)])
        axes.text(size + 0.03 * longest, place, f"{size:,}", va="center", size=8, color=INK)
    axes.set_xlim(0, longest * 1.42)
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "x")


def _name_rows(axes: Axes, codecs: list[str]) -> None:
    axes.set_yticks(range(len(codecs)), codecs)
    axes.set_ylim(len(codecs) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelcolor=INK)


def _key() -> list[Line2D]:
    names = {"the library's own step": MUTED, "from or to plain values": "white"}
    return [
        Line2D([], [], ls="", marker="o", ms=5, mfc=face, mec=MUTED, label=label)
        for label, face in names.items()
    ]


CODEC_COST = View("codec_cost", TITLE, codec_cost_table, draw_codec_cost, suits=is_of_codecs)
