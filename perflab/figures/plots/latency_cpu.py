"""Latency against CPU over time windows: is the service slow when its processor is busy?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.figures.evidence import correlation_text, window_pairs
from perflab.figures.origin import footer
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.style import MUTED, Look, canvas, finish, looks, only_grid, styled, tick_label
from perflab.recordings import Run

SERVICES = ("inference", "postgres")
TABLE_ROWS = 400


def table(run: Run) -> pd.DataFrame:
    """Return the windows: service, treatment, trial, CPU share (1.0 = a core), response in ms.

    At most ``TABLE_ROWS`` rows, evenly thinned; the figure draws all windows.
    """
    windows = window_pairs(run, SERVICES)
    every = -(-len(windows) // TABLE_ROWS) if len(windows) else 1
    return windows.iloc[::every].reset_index(drop=True)


@styled
def latency_cpu(run: Run) -> Figure:
    """Draw response time against CPU per time window, one panel per service."""
    look = looks(run.record)
    windows = window_pairs(run, SERVICES)
    services = [name for name in SERVICES if name in set(windows["service"])] or [SERVICES[0]]
    figure = canvas(
        "Response time against CPU use of each service",
        footer(run),
        plot_height_in=3.4,
        subtitle="Every point is one time window of a valid trial. ρ: Spearman's rank correlation"
        " over windows, within trials where a treatment is constant.",
        key=_key(look, windows),
    )
    panels = figure.subplots(1, len(services), sharey=True, squeeze=False).ravel()
    for axes, service in zip(panels, services, strict=True):
        _draw_panel(axes, run, windows[windows["service"] == service], service, look)
    panels[0].set_ylabel("mean response time, ms (log)")
    return finish(figure)


def _draw_panel(
    axes: Axes, run: Run, windows: pd.DataFrame, service: str, look: Mapping[str, Look]
) -> None:
    for name, group in windows.groupby("treatment", sort=False):
        each = look[str(name)]
        axes.plot(group["cpu_share"], group["response_ms"], ls="", marker=each.marker, ms=3.4,
                  mfc=each.color, mec="white", mew=0.3, alpha=0.75)
    axes.set_title(f"{service}\n{correlation_text(run, service)}", size=8.5)
    axes.set_xlabel(f"CPU use of {service}, cores")
    log_axis(axes, "y")
    axes.set_xlim(left=0)
    only_grid(axes, "y")
    if not len(windows):
        axes.set_xticks([])
        axes.text(0.5, 0.5, "no window of a valid trial", transform=axes.transAxes, ha="center",
                  color=MUTED)


def _key(look: Mapping[str, Look], windows: pd.DataFrame) -> list[Line2D]:
    shown = set(windows["treatment"])
    return [
        Line2D([], [], ls="", marker=each.marker, ms=4.5, mfc=each.color, mec="white", mew=0.3,
               label=tick_label(each.label, 6.4, 8, lines=1))
        for name, each in look.items()
        if name in shown
    ]
