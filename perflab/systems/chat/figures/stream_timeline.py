"""CPU, message volume, latency and users over a trial, phase by phase."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import looks_of
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.sheets import grid_of
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run
from perflab.systems.chat.figures import phases

TITLE = "a trial over time"
PANELS = {
    "cpu_percent": "CPU,\n% of a core",
    "messages_per_s": "messages\nper second",
    "p90_ms": "p90,\nms (log)",
    "users": "connected\nusers",
}
MOST_COLUMNS = 2


def stream_timeline_table(run: Run) -> pd.DataFrame:
    """Return the windows of the first valid trial of the treatments that are shown."""
    every = phases.windows(run)
    every = every[every["treatment"].isin([*looks_of(run.record)][:MOST_COLUMNS])]
    firsts = every.groupby("treatment", sort=False)["trial_id"].first()
    own = every[every["trial_id"].isin(set(firsts))]
    own = own.assign(cpu_percent=100 * own["cpu"].astype(float))
    return own[["treatment", "t_s", "phase", *PANELS]]


def draw_stream_timeline(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each treatment's first valid trial over time, one column per treatment."""
    shown = dict([*page.looks.items()][:MOST_COLUMNS])
    seen = set(table["phase"])
    grid = grid_of(len(shown), across=MOST_COLUMNS)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=5.6,
        subtitle="Seconds of each treatment's first valid trial; shaded by phase. CPU is that of"
        f" {phases.SERVICE}; latency is that of deliveries, from the planned instant of sending."
        f"{phases.left_out(page, MOST_COLUMNS)}",
        key=[
            Patch(fc=look.color, alpha=phases.SHADES[name], label=look.label)
            for name, look in phases.LOOKS.items()
            if name in seen
        ],
    )
    panels = figure.subplots(
        len(PANELS), len(shown), sharex="col", sharey="row", squeeze=False,
        height_ratios=[1.3, 1, 1, 0.8],
    )  # fmt: skip
    for column, (name, look) in enumerate(shown.items()):
        own = table[table["treatment"] == name]
        panels[0, column].set_title(tick_label(look.label, grid.room_in(3.2), 9, 1))
        for axes, what in zip(panels[:, column], PANELS, strict=True):
            _draw(axes, own, what, look.color)
        panels[-1, column].set_xlabel("seconds since the first connection")
    for axes, words in zip(panels[:, 0], PANELS.values(), strict=True):
        axes.set_ylabel(words)
    figure.align_ylabels(panels[:, 0])
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, what: str, color: str) -> None:
    if own.empty:
        # The ticks stay: panels that share their axes share them as well.
        axes.text(0.5, 0.5, phases.EMPTY, transform=axes.transAxes, ha="center", color=MUTED)
        return
    for phase, group in own.groupby("phase", sort=False):
        begin, end = float(group["t_s"].min()), float(group["t_s"].max()) + 1
        axes.axvspan(
            begin,
            end,
            color=phases.LOOKS[str(phase)].color,
            alpha=phases.SHADES[str(phase)],
            lw=0,
            zorder=0,
        )
    axes.plot(own["t_s"] + 0.5, own[what], color=color, lw=1.1)
    if what == "p90_ms":
        log_axis(axes, "y")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "y")


STREAM_TIMELINE = View(
    "stream_timeline", TITLE, stream_timeline_table, draw_stream_timeline, phases.of_crowds
)
