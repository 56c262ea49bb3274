"""Message volume against the number of users, with the fitted power law and the published one."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis.power_law import PowerLaw
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import PALETTE
from perflab.figures.nothing import empty_figure
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import MUTED, styled
from perflab.recordings import Run
from perflab.systems.chat.analysis.volume import (
    JOINING,
    PLATEAU,
    crowds,
    growing_treatments,
    plateaus,
    published_factor,
    volume_laws,
)
from perflab.systems.chat.figures import phases

TITLE = "message volume against users"
PUBLISHED_POWER = 2.0
COLUMNS = ["from", "block", "users", "messages_per_s"]
LOOKS = {JOINING: (PALETTE[0], "o"), PLATEAU: (PALETTE[1], "s")}
WORDS = {
    JOINING: " Circles: means over a trial's seconds with about as many users, the geometric mean"
    " of those who act and those who are connected.",
    PLATEAU: " Squares: whole trials, while all users act.",
}


def table(run: Run) -> pd.DataFrame:
    """Return volume by users: see ``analysis.volume``, ``crowds`` and ``plateaus``.

    Columns: from (where the points come from), block (trial or block), users, messages_per_s.
    """
    return phases.thinned(_points(run, list(volume_laws(run, phases.windows(run)))))


def _points(run: Run, places: list[str]) -> pd.DataFrame:
    of = {
        JOINING: lambda: crowds(run, phases.windows(run)).rename(columns={"crowd": "users"}),
        PLATEAU: lambda: plateaus(run),
    }
    parts = [of[place]().assign(**{"from": place}).astype({"block": str}) for place in places]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


@styled
def volume_users(run: Run) -> Figure | None:
    """Draw volume against users on logarithmic axes; None where the run has one number of users."""
    if len(run.record.factors.get("users", [])) < 2 and not growing_treatments(run):
        return None
    laws = volume_laws(run, phases.windows(run))
    found, factor = _points(run, list(laws)), published_factor(run)
    shown = found[found["messages_per_s"] > 0]
    said = " ".join(f"{_said(where, law)}.{WORDS[where]}" for where, law in laws.items())
    if shown.empty:
        return empty_figure(run, TITLE)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.3,
        subtitle=said,
        key=_key(laws, factor),
    )
    axes = figure.subplots()
    _draw(axes, shown, laws, factor)
    return finish(figure)


def _said(where: str, law: PowerLaw) -> str:
    return f"Volume {where}{'' if law.supported else ':'} {law.text()}"


def _draw(axes: Axes, shown: pd.DataFrame, laws: dict[str, PowerLaw], factor: float | None) -> None:
    for where, law in laws.items():
        own, (color, marker) = shown[shown["from"] == where], LOOKS[where]
        axes.plot(own["users"], own["messages_per_s"], ls="", marker=marker, ms=3.6, mfc=color,
                  mec="white", mew=0.3, alpha=0.75)  # fmt: skip
        if law.supported:
            places = np.geomspace(own["users"].min(), own["users"].max(), 60)
            fitted = law.factor.value * places**law.exponent.value
            axes.plot(places, fitted, color=color, lw=1.4)
    if factor is not None:
        places = np.geomspace(shown["users"].min(), shown["users"].max(), 60)
        axes.plot(places, factor * places**PUBLISHED_POWER, color=MUTED, lw=1.1, ls=":")
    log_axis(axes, "x")
    log_axis(axes, "y")
    axes.set_xlabel("users (log)")
    axes.set_ylabel("messages delivered per second (log)")
    only_grid(axes, "y")


def _key(laws: dict[str, PowerLaw], factor: float | None) -> list[Line2D]:
    handles = []
    for where, law in laws.items():
        color, marker = LOOKS[where]
        handles.append(
            Line2D([], [], ls="", marker=marker, ms=4.5, color=color, label=f"measured {where}")
        )
        if law.supported:
            handles.append(Line2D([], [], color=color, lw=1.4, label=f"fitted {where}"))
    if factor is not None:
        words = f"published: {factor:g} n\N{SUPERSCRIPT TWO}"
        handles.append(Line2D([], [], color=MUTED, lw=1.1, ls=":", label=words))
    return handles
