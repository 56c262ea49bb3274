"""Delivery latency against CPU over windows of a second, coloured by phase, sized by volume."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis.knee import Knee, knee
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import FAINT, INK, MUTED, styled
from perflab.figures.words import tick_label
from perflab.recordings import Run
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against CPU of the service"
COLUMNS = ["treatment", "trial_id", "t_s", "phase", "cpu", "messages_per_s", "p90_ms"]
# The study's reading of its own figure: latency rises, then spikes.
PUBLISHED_PERCENT = (50, 70)
LARGEST_POINT = 60.0


def table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90 and a CPU share; at most 400 rows, evenly thinned."""
    return phases.thinned(_windows(run))


def _windows(run: Run) -> pd.DataFrame:
    return phases.windows(run)[COLUMNS].dropna()


@styled
def delivery_cpu(run: Run) -> Figure:
    """Draw latency against CPU, one panel per treatment, with the fitted knee if there is one."""
    found = _windows(run)
    if found.empty:
        return empty_figure(run, TITLE)
    shown = phases.shown_treatments(run)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.6 if len(shown) < 3 else 6.4,
        subtitle="Every point is a second of a valid trial; its area is the messages delivered in"
        " it. Dotted: where the study saw latency rise (50%) and spike (70%). Dashed, in a band:"
        " the fitted knee with its 95% interval, where the data support one; from blocks of"
        f" windows it is for these trials only.{phases.left_out(run, shown)}",
        key=[*phases.key(set(found["phase"])), *_size_key(found)],
    )
    panels = phases.panels(
        figure, len(shown), f"CPU use of {phases.SERVICE}, % of a core", "p90 per second, ms (log)"
    )
    for axes, (name, label) in zip(panels, shown, strict=True):
        own = found[found["treatment"] == name]
        _draw(axes, own, label, knee(own, "cpu", "p90_ms"), float(found["messages_per_s"].max()))
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, label: str, found: Knee, most: float) -> None:
    words = f"{found.words()} (n = {found.unit})" if found.unit else found.words()
    axes.set_title(f"{tick_label(label, 3.2, 8.5, 1)}\n{tick_label(words, 3.2, 7.5, 3)}", size=8)
    if own.empty:
        phases.say_nothing(axes)
        return
    for place in PUBLISHED_PERCENT:
        axes.axvline(place, color=MUTED, lw=0.9, ls=":", zorder=1)
    if found.supported:
        axes.axvspan(100 * found.low, 100 * found.high, color=FAINT, lw=0, zorder=0)
        axes.axvline(100 * found.cpu, color=INK, lw=1.1, ls=(0, (4, 2)), zorder=1)
    for phase, group in own.groupby("phase", sort=False):
        axes.scatter(
            100 * group["cpu"],
            group["p90_ms"],
            s=_areas(group["messages_per_s"].to_numpy(float), most),
            marker=phases.MARKERS[str(phase)],
            c=phases.COLORS[str(phase)],
            edgecolors="white",
            linewidths=0.3,
            alpha=0.65,
            zorder=2,
        )
    log_axis(axes, "y")
    axes.set_xlim(left=0)
    only_grid(axes, "y")


def _areas(volume: np.ndarray, most: float) -> np.ndarray:
    areas: np.ndarray = 3 + LARGEST_POINT * volume / max(most, 1.0)
    return areas


def _size_key(found: pd.DataFrame) -> list[Line2D]:
    if found.empty:
        return []
    most = float(found["messages_per_s"].max())
    size = float(np.sqrt(_areas(np.array([most]), most)[0]))
    return [
        Line2D([], [], ls="", marker="o", ms=size, mfc="none", mec=MUTED,
               label=f"{most:,.0f} messages/s")
    ]  # fmt: skip
