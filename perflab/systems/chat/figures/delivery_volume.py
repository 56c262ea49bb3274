"""Delivery latency against message volume, coloured by phase, with the study's targets."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import MUTED, styled
from perflab.figures.words import tick_label
from perflab.recordings import Run
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against message volume"
COLUMNS = ["treatment", "trial_id", "t_s", "phase", "messages_per_s", "p90_ms"]
TARGET_MS = 200.0


def table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90; at most 400 rows, evenly thinned."""
    return phases.thinned(_windows(run))


def _windows(run: Run) -> pd.DataFrame:
    return phases.windows(run)[COLUMNS].dropna()


@styled
def delivery_volume(run: Run) -> Figure:
    """Draw latency against volume, one panel per treatment."""
    found = _windows(run)
    if found.empty:
        return empty_figure(run, TITLE)
    shown = phases.shown_treatments(run)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.4 if len(shown) < 3 else 6.0,
        subtitle="Every point is a second of a valid trial. Dashed: the study's target of"
        f" {TARGET_MS:g} ms for the p90.{phases.left_out(run, shown)}",
        key=phases.key(set(found["phase"])),
    )
    panels = phases.panels(
        figure, len(shown), "messages delivered per second", "p90 per second, ms (log)"
    )
    for axes, (name, label) in zip(panels, shown, strict=True):
        _draw(axes, found[found["treatment"] == name], label)
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, label: str) -> None:
    axes.set_title(tick_label(label, 3.2, 9, 1))
    if own.empty:
        phases.say_nothing(axes)
        return
    phases.scatter(axes, own, own["messages_per_s"], "p90_ms")
    log_axis(axes, "y")
    axes.axhline(TARGET_MS, color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "y")
