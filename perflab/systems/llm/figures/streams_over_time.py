"""Requests under way over time in every trial, and when requests failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE
from perflab.figures.nothing import say
from perflab.figures.page import Page
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.load.outcome import CUT_OFF
from perflab.recordings import Run

TITLE = "requests under way over time"
UNDER_WAY, FAILED = "under way", "failed"
COLUMNS = ["treatment", "trial_id", "what", "t_s", "value"]
STEPS = 200
PANEL_IN, LABEL_IN = 1.7, 2.9
ROOM = 1.12


def over_time_table(run: Run) -> pd.DataFrame:
    """Return how many requests were under way at instants of each trial, and when some failed.

    Time counts from the first request; ``value`` of a failure is how many had failed by then.
    """
    shown = trials_shown(run)
    names = dict(zip(shown["trial_id"], shown["treatment"], strict=True))
    requests = run.requests(None, list(names)) if names else pd.DataFrame()
    if requests.empty:
        return pd.DataFrame(columns=COLUMNS)
    rows = [
        {"treatment": names[str(trial)], "trial_id": str(trial), **row}
        for trial, own in requests.groupby("trial_id", sort=False)
        for row in _of_trial(own)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_trial(own: pd.DataFrame) -> Iterator[dict[str, Any]]:
    sent = own[(own["sent_ns"] > 0) & (own["done_ns"] > 0)]
    begin_ns, end_ns = int(own["planned_ns"].min()), int(own["done_ns"].max())
    instants = np.linspace(begin_ns, end_ns, STEPS)
    begun = np.searchsorted(np.sort(sent["sent_ns"]), instants, side="right")
    over = np.searchsorted(np.sort(sent["done_ns"]), instants, side="right")
    for at_ns, value in zip(instants, begun - over, strict=True):
        yield {"what": UNDER_WAY, "t_s": (at_ns - begin_ns) / 1e9, "value": float(value)}
    failed = own[(own["error"] != "") & ~own["error"].isin(CUT_OFF)]["done_ns"].sort_values()
    for number, at_ns in enumerate(failed, start=1):
        yield {"what": FAILED, "t_s": (at_ns - begin_ns) / 1e9, "value": float(number)}


def draw_over_time(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per treatment: a line per trial, and failures as they add up."""
    grid = page.sheet.grid(max(2, len(page.looks)), across=2, least_in=1.6)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.4 + page.sheet.height_in(PANEL_IN) * grid.down,
        subtitle="A line is a trial: requests that were sent and had not their last byte. Crosses:"
        " requests that failed, as they add up. Of ramps, time counts from the first user.",
        key=_key(table),
    )
    panels = figure.subplots(grid.down, grid.across, squeeze=False).ravel()
    for axes in panels[len(page.looks) :]:
        axes.remove()
    for axes, (name, look) in zip(panels, page.looks.items(), strict=False):
        own = table[table["treatment"] == name]
        if own.empty:
            say(axes, f"{look.label}: no trial", grid.room_in(LABEL_IN))
            continue
        _draw(axes, own)
        axes.set_title(tick_label(look.label, grid.room_in(LABEL_IN), 7.5, lines=2), size=7.5)
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame) -> None:
    for _, line in own[own["what"] == UNDER_WAY].groupby("trial_id", sort=False):
        axes.plot(line["t_s"], line["value"], color=PALETTE[0], lw=0.8, alpha=0.7)
    failed = own[own["what"] == FAILED]
    axes.plot(failed["t_s"], failed["value"], ls="", marker="x", ms=3, color=PALETTE[1])
    axes.set_xlim(0, None)
    axes.set_ylim(0, max(1.0, float(own["value"].max())) * ROOM)
    axes.set_xlabel("s", color=MUTED)
    axes.set_ylabel("requests")
    only_grid(axes, "y")


def _key(table: pd.DataFrame) -> list[Line2D]:
    found = [Line2D([], [], color=PALETTE[0], lw=1.2, label=UNDER_WAY)]
    if (table["what"] == FAILED).any():
        label = "failed so far"
        found.append(Line2D([], [], ls="", marker="x", ms=4, color=PALETTE[1], label=label))
    return found


STREAMS_OVER_TIME = View("streams_over_time", TITLE, over_time_table, draw_over_time)
