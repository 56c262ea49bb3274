"""CPU, message volume, latency and users over a trial, phase by phase."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import looks
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import styled
from perflab.figures.words import tick_label
from perflab.recordings import Run
from perflab.systems.chat.figures import phases

TITLE = "a trial over time"
PANELS = {
    "cpu": "CPU,\n% of a core",
    "messages_per_s": "messages\nper second",
    "p90_ms": "p90,\nms (log)",
    "users": "connected\nusers",
}
MOST_COLUMNS = 2
COLUMNS = ["treatment", "trial_id", "t_s", "phase", *PANELS]


def table(run: Run) -> pd.DataFrame:
    """Return the windows of the shown trials; at most 400 rows, evenly thinned."""
    return phases.thinned(_windows(run))


def _windows(run: Run) -> pd.DataFrame:
    found = phases.windows(run)[COLUMNS]
    firsts = found.groupby("treatment", sort=False)["trial_id"].first()
    return found[found["trial_id"].isin(set(firsts))].reset_index(drop=True)


@styled
def stream_timeline(run: Run) -> Figure:
    """Draw each treatment's first valid trial over time, one column per treatment."""
    found = _windows(run)
    if found.empty:
        return empty_figure(run, TITLE)
    shown = phases.shown_treatments(run, MOST_COLUMNS)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=5.6,
        subtitle="Seconds of each treatment's first valid trial; shaded by phase. CPU is that of"
        f" {phases.SERVICE}; latency is that of deliveries, from the planned instant of sending."
        f"{phases.left_out(run, shown)}",
        key=[
            Patch(fc=color, alpha=phases.SHADES[name], label=phases.WORDS[name])
            for name, color in phases.COLORS.items()
            if name in set(found["phase"])
        ],
    )
    panels = figure.subplots(
        len(PANELS), len(shown), sharex="col", sharey="row", squeeze=False,
        height_ratios=[1.3, 1, 1, 0.8],
    )  # fmt: skip
    look = looks(run.record)
    for column, (name, label) in enumerate(shown):
        own = found[found["treatment"] == name]
        panels[0, column].set_title(tick_label(label, 3.2, 9, 1))
        for axes, what in zip(panels[:, column], PANELS, strict=True):
            _draw(axes, own, what, look[name].color)
        panels[-1, column].set_xlabel("seconds since the first connection")
    for axes, words in zip(panels[:, 0], PANELS.values(), strict=True):
        axes.set_ylabel(words)
    figure.align_ylabels(panels[:, 0])
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, what: str, color: str) -> None:
    if own.empty:
        phases.say_nothing(axes)
        return
    for phase, group in own.groupby("phase", sort=False):
        begin, end = float(group["t_s"].min()), float(group["t_s"].max()) + 1
        axes.axvspan(
            begin,
            end,
            color=phases.COLORS[str(phase)],
            alpha=phases.SHADES[str(phase)],
            lw=0,
            zorder=0,
        )
    values = own[what] * (100 if what == "cpu" else 1)
    axes.plot(own["t_s"] + 0.5, values, color=color, lw=1.1)
    if what == "p90_ms":
        log_axis(axes, "y")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "y")
