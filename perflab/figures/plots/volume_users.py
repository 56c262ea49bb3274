"""Message volume against the size of the crowd, with the fitted power law and the published one."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis.power_law import PowerLaw
from perflab.analysis.stream_relations import crowds, volume_law
from perflab.figures.canvas import canvas, finish, only_grid
from perflab.figures.looks import PALETTE
from perflab.figures.origin import footer
from perflab.figures.plots import phases
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import INK, MUTED, styled
from perflab.recordings import Run

PUBLISHED_FACTOR, PUBLISHED_POWER = 0.1, 2.0


def table(run: Run) -> pd.DataFrame:
    """Return volume by crowd and trial; see ``analysis.stream_relations.crowds``."""
    return phases.thinned(crowds(phases.windows(run)))


@styled
def volume_users(run: Run) -> Figure:
    """Draw volume against users on logarithmic axes."""
    found = crowds(phases.windows(run))
    law = volume_law(phases.windows(run))
    figure = canvas(
        "Message volume against users",
        footer(run),
        plot_height_in=3.3,
        subtitle=f"{_said(law)}. Every point is the mean over a trial's seconds with about"
        " as many users; users: geometric mean of those who act and those who are connected.",
        key=_key(law),
    )
    axes = figure.subplots()
    if found.empty:
        phases.say_nothing(axes)
        return finish(figure)
    _draw(axes, found, law)
    return finish(figure)


def _said(law: PowerLaw) -> str:
    return f"Volume {law.text()}" if law.supported else law.reason.capitalize()


def _draw(axes: Axes, found: pd.DataFrame, law: PowerLaw) -> None:
    axes.plot(found["crowd"], found["messages_per_s"], ls="", marker="o", ms=3.6, mfc=PALETTE[0],
              mec="white", mew=0.3, alpha=0.75)  # fmt: skip
    places = np.geomspace(found["crowd"].min(), found["crowd"].max(), 60)
    axes.plot(places, PUBLISHED_FACTOR * places**PUBLISHED_POWER, color=MUTED, lw=1.1, ls=":")
    if law.supported:
        axes.plot(places, law.factor.value * places**law.exponent.value, color=INK, lw=1.4)
    log_axis(axes, "x")
    log_axis(axes, "y")
    axes.set_xlabel("users (log)")
    axes.set_ylabel("messages delivered per second (log)")
    only_grid(axes, "y")


def _key(law: PowerLaw) -> list[Line2D]:
    handles = [
        Line2D([], [], ls="", marker="o", ms=4.5, color=PALETTE[0], label="measured"),
        Line2D([], [], color=MUTED, lw=1.1, ls=":", label="published: 0.1 n\N{SUPERSCRIPT TWO}"),
    ]
    if law.supported:
        handles.append(Line2D([], [], color=INK, lw=1.4, label="fitted power law"))
    return handles
