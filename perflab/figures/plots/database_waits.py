"""Where commits wait: what the database's backends were in while they had a statement."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.analysis.trials.waits import NO_WAIT, has_waits, wait_shares
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE, looks_of
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "where commits wait, in the database"
# Past so many the rest is one: they would be too thin to see.
SHOWN = 5
OTHERS = "other waits"
HIGH = 0.78
COLUMNS = ["treatment", "event", "share", "low", "high", "trials", "samples", "backends"]


def database_waits_table(run: Run) -> pd.DataFrame:
    """Return :func:`~perflab.analysis.trials.waits.wait_shares`, in the order of the record."""
    table = wait_shares(run)
    place = table["treatment"].map({name: n for n, name in enumerate(looks_of(run.record))})
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)[COLUMNS]


def draw_database_waits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw, per treatment, a bar for each of the events that backends waited in most."""
    events = _events(table)
    colors = {name: FAINT if name == NO_WAIT else PALETTE[n] for n, name in enumerate(events)}
    each_in = 0.19
    firsts = table.drop_duplicates("treatment").to_dict("records")
    said = {str(each["treatment"]): _words(each) for each in firsts}
    picture_in = max(0.5, each_in * len(events) + 0.14)
    own_rows = rows.of_looks(page.looks, page.sheet, picture_in, said)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="Share of the samples of active backends, by wait event, mean over valid trials"
        " with its 95% t interval. The look is a backend too: on a core that they share, no other"
        " can be seen running while it looks. Without a wait event is also who makes the pause of"
        " commit_delay.",
        key=[Patch(fc=colors[name], ec=MUTED, lw=0.4, label=name) for name in events],
    )
    axes = figure.subplots()
    places = own_rows.frame(axes)
    axes.set_xlim(0, 1.42)
    for name, place in places.items():
        own = table[table["treatment"] == name]
        if own.empty:
            axes.text(0.01, place, "no active backend", va="center", color=MUTED,
                      transform=axes.get_yaxis_transform())  # fmt: skip
        else:
            _draw(axes, place, own, events, colors)
            own_rows.say(axes, name, 1.41, place, size=7.5, ha="right", linespacing=1.3)
    axes.set_xticks(np.arange(0, 1.01, 0.25), ["0", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("share of active backends", x=0.5 / 1.42)
    only_grid(axes, "x")
    return finish(figure)


def _events(table: pd.DataFrame) -> list[str]:
    """Return the events that take most anywhere, those in none last."""
    most = table.groupby("event")["share"].max().sort_values(ascending=False)
    waits = [str(name) for name in most.index if name != NO_WAIT][:SHOWN]
    return [*waits, *([NO_WAIT] if NO_WAIT in most.index else [])]


def _draw(
    axes: Axes, place: float, own: pd.DataFrame, events: list[str], colors: Mapping[str, str]
) -> None:
    found = {str(each["event"]): each for each in own.to_dict("records")}
    heights = np.linspace(-0.5, 0.5, len(events) + 1)[:-1] * HIGH + HIGH / (2 * len(events))
    for name, offset in zip(events, heights, strict=True):
        y = place + float(offset)
        if name in found:
            _bar(axes, y, HIGH / len(events), found[name], colors[name])
        else:
            axes.text(0.01, y, "never seen", size=7, va="center", color=MUTED)


def _words(row: Mapping[Hashable, Any]) -> str:
    return (
        f"n = {int(row['trials'])} trials\n{int(row['samples']):,} samples\n"
        f"{float(row['backends']):.2f} at a time"
    )


def _bar(axes: Axes, y: float, height: float, row: Mapping[Hashable, Any], color: str) -> None:
    share, low, high = (float(row[name]) for name in ("share", "low", "high"))
    axes.barh(y, share, height=height * 0.86, color=color, edgecolor=MUTED, lw=0.3)
    words = f"{share:.0%}"
    if math.isfinite(low):
        axes.plot([low, high], [y, y], color=INK, lw=1.2, zorder=4, gid="interval")
        words += f" [{low:.0%}, {high:.0%}]"
    right = max(share, high) if math.isfinite(high) else share
    axes.text(right + 0.012, y, words, size=7, va="center")


DATABASE_WAITS = View(
    "database_waits", TITLE, database_waits_table, draw_database_waits, suits=has_waits
)
