"""Requests in flight over time: how many wait for the server, and where the other users are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from perflab.analysis.trials.users_elsewhere import (
    CLIENT,
    CONNECTION,
    ELSEWHERE,
    LAW,
    SERVER,
    in_flight,
    measures_requests,
)
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE, Look
from perflab.figures.nothing import say
from perflab.figures.page import Page
from perflab.figures.sheets import Grid
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.figures.words import tick_label, wrap
from perflab.numerals import number
from perflab.recordings import Run

TITLE = "requests in flight over time, and where the other users are"
COLORS = {SERVER: PALETTE[0], CONNECTION: PALETTE[1], CLIENT: PALETTE[2], ELSEWHERE: PALETTE[5]}
PANEL_IN, LABEL_IN = 2.0, 2.9
# Narrower panels have no room for the words in them.
NARROWEST_IN = 2.6
BAND_ALPHA = 0.2
ROOM = 1.3


def in_flight_table(run: Run) -> pd.DataFrame:
    """Return how many requests are where, over time, in the order of the record."""
    table = in_flight(run)
    order = {item.name: place for place, item in enumerate(run.record.treatments)}
    places = table["treatment"].map(order).to_numpy(float)
    return table.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)


def draw_in_flight(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw one panel per treatment: a line with its band for each place a request can be in."""
    shown = [state for state in COLORS if state in set(table["state"])]
    grid = page.sheet.grid(len(page.looks), across=2, least_in=NARROWEST_IN)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.5 + page.sheet.height_in(PANEL_IN) * grid.down,
        subtitle="Lines: median over valid trials of the mean in each window of time, from the"
        " begin of the measured stage to the end of the shortest trial; bands: smallest to largest"
        " trial. Dashed: what Little's law says must wait for the server, answers per second × mean"
        " time from sending to the last byte.",
        key=_key(shown),
    )
    panels = figure.subplots(grid.down, grid.across, squeeze=False, sharey=True).ravel()
    for axes, (name, look) in zip(panels, page.looks.items(), strict=False):
        own = table[table["treatment"] == name]
        _draw_panel(axes, own, look, shown, grid)
    for axes in panels[len(page.looks) :]:
        axes.set_axis_off()
    top = float(table["high"].max())
    panels[0].set_ylim(0, max(1.0, top) * ROOM)
    for place, axes in enumerate(panels[: len(page.looks)]):
        # The numbers of a shared axis stand at its first panel, where that has any.
        if axes.axison and (place % grid.across == 0 or not panels[place - 1].axison):
            axes.tick_params(labelleft=True)
            axes.set_ylabel("requests, or users")
    return finish(figure)


def _draw_panel(
    axes: Axes, own: pd.DataFrame, look: Look, shown: Sequence[str], grid: Grid
) -> None:
    label = tick_label(look.label, grid.room_in(LABEL_IN), 7.5, lines=2)
    if own.empty:
        say(axes, f"{look.label}: no valid trial", grid.room_in(LABEL_IN))
        return
    for state in shown:
        line = own[own["state"] == state]
        axes.fill_between(line["t_s"], line["low"], line["high"], color=COLORS[state],
                          alpha=BAND_ALPHA, lw=0)  # fmt: skip
        axes.plot(line["t_s"], line["median"], color=COLORS[state], lw=1.3)
    law = own[own["state"] == LAW].iloc[0]
    axes.axhspan(law["low"], law["high"], color=INK, alpha=0.08, lw=0)
    axes.axhline(law["median"], color=INK, lw=1.0, ls=(0, (4, 3)))
    axes.set_title(label, size=7.5)
    words = "\n".join(wrap(_words(own, law), 7.0, grid.words_in))
    axes.text(0.02, 0.97, words, size=7.0, va="top", transform=axes.transAxes)
    axes.set_xlim(0, float(own["t_s"].max()) * 1.01)
    axes.set_xlabel("s")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    only_grid(axes, "y")


def _words(own: pd.DataFrame, law: Mapping[str, float] | pd.Series[float]) -> str:
    waiting = _mean(own, SERVER)
    elsewhere = _mean(own, ELSEWHERE)
    among = f", {number(elsewhere)} elsewhere" if math.isfinite(elsewhere) else ""
    trials = int(law["trials"])
    return f"{number(waiting)} at the server (law {number(law['median'])}){among}, n = {trials}"


def _mean(own: pd.DataFrame, state: str) -> float:
    return float(own.loc[own["state"] == state, "median"].mean())


def _key(shown: Sequence[str]) -> list[Line2D]:
    lines = [Line2D([], [], color=COLORS[state], lw=1.6, label=state) for state in shown]
    return [*lines, Line2D([], [], color=INK, lw=1.0, ls=(0, (4, 3)), label="Little's law")]


IN_FLIGHT = View("in_flight", TITLE, in_flight_table, draw_in_flight, suits=measures_requests)
