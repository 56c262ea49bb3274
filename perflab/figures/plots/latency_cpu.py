"""Latency against CPU over time windows: is the service slow when its processor is busy?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis import Correlation
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.evidence import LATENCY, WINDOW_S, cpu_windows, latency_and_cpu
from perflab.figures.looks import Look, looks
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import styled
from perflab.figures.words import tick_label
from perflab.recordings import Run

SERVICES = ("inference", "postgres")
TITLE = "response time against CPU use of each service"
TABLE_ROWS = 400


def table(run: Run) -> pd.DataFrame:
    """Return the windows: treatment, trial, start in ns, median ms, CPU by service (1.0 = a core).

    At most ``TABLE_ROWS`` rows, evenly thinned; the figure draws all windows.
    """
    found = cpu_windows(run, SERVICES)
    every = max(1, -(-len(found) // TABLE_ROWS))
    return found.iloc[::every].reset_index(drop=True)


@styled
def latency_cpu(run: Run) -> Figure | None:
    """Draw response time against CPU per time window, one panel per service.

    None for a run that sampled other services.
    """
    sampled = set(run.samples()["service"])
    if sampled and not sampled & set(SERVICES):
        return None
    look = looks(run.record)
    found = cpu_windows(run, SERVICES)
    if found.empty:
        return empty_figure(run, TITLE)
    services = [name for name in SERVICES if f"cpu_{name}" in found]
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.4,
        subtitle=f"Every point is a window of {WINDOW_S:g} s in a valid trial. ρ: Spearman's rank"
        " correlation of the windows within a trial, averaged over the trials that have enough of"
        " them, with its 95% interval.",
        key=_key(look, found),
    )
    panels = figure.subplots(1, max(1, len(services)), sharey=True, squeeze=False).ravel()
    for axes, service in zip(panels, services, strict=False):
        _draw_panel(axes, found, service, look)
    panels[0].set_ylabel("median response time, ms (log)")
    return finish(figure)


def _draw_panel(axes: Axes, found: pd.DataFrame, service: str, look: Mapping[str, Look]) -> None:
    for name, group in found.groupby("treatment", sort=False):
        each = look[str(name)]
        axes.plot(
            group[f"cpu_{service}"],
            group[LATENCY],
            ls="",
            marker=each.marker,
            ms=3.4,
            mfc=each.color,
            mec="white",
            mew=0.3,
            alpha=0.75,
        )
    axes.set_title(_in_words(latency_and_cpu(found, service)), size=8.5)
    axes.set_xlabel(f"CPU use of {service}, cores")
    log_axis(axes, "y")
    axes.set_xlim(left=0)
    only_grid(axes, "y")


def _in_words(correlation: Correlation) -> str:
    if not math.isfinite(correlation.rho):
        return "ρ: too few windows"
    known = math.isfinite(correlation.low)
    interval = f"[{correlation.low:.2f}, {correlation.high:.2f}]" if known else "(no interval)"
    trials = f"{correlation.n} trial{'s' if correlation.n != 1 else ''}"
    words = f"ρ = {correlation.rho:.2f} {interval}\nn = {trials}, {correlation.windows:,} windows"
    return words.replace("-", "\N{MINUS SIGN}")


def _key(look: Mapping[str, Look], windows: pd.DataFrame) -> list[Line2D]:
    shown = set(windows["treatment"])
    return [
        Line2D(
            [],
            [],
            ls="",
            marker=each.marker,
            ms=4.5,
            mfc=each.color,
            mec="white",
            mew=0.3,
            label=tick_label(each.label, 6.4, 8, lines=1),
        )
        for name, each in look.items()
        if name in shown
    ]
