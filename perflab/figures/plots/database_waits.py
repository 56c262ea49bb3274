"""Where commits wait: what the database's backends were in while they had a statement."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from perflab.analysis.trials.waits import NO_WAIT, has_waits, wait_shares
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, RowChart
from perflab.figures.looks import PALETTE, in_order, looks_of
from perflab.figures.page import Page
from perflab.figures.theme import FAINT
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "where commits wait, in the database"
# Past so many the rest is one: they would be too thin to see.
SHOWN = 5
TICKS = {0.25 * n: f"{25 * n}%" for n in range(5)}
COLUMNS = ["treatment", "event", "share", "low", "high", "trials", "samples", "backends"]


def database_waits_table(run: Run) -> pd.DataFrame:
    """Return :func:`~perflab.analysis.trials.waits.wait_shares`, in the order of the record."""
    return in_order(wait_shares(run), looks_of(run.record))[COLUMNS]


def draw_database_waits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw, per treatment, a bar for each of the events that backends waited in most."""
    events = _events(table)
    colors = {name: FAINT if name == NO_WAIT else PALETTE[n] for n, name in enumerate(events)}
    chart = RowChart(
        TITLE,
        "Share of the samples of active backends, by wait event, mean over valid trials with its"
        " 95% t interval. The look is a backend too: on a core that they share, no other can be"
        " seen running while it looks. Without a wait event is also who makes the pause of"
        " commit_delay.",
        layers=(Bars(colors, "{:.0%}".format, by="event", missing="never seen"),),
        panels={"": Axis("share of active backends", ends=(0, 1.3), ticks=TICKS)},
        value="share",
        row_in=max(0.5, 0.19 * len(events) + 0.14),
        said=_said,
        nothing="no active backend",
    )
    return chart.draw(table, page)


def _events(table: pd.DataFrame) -> list[str]:
    """Return the events that take most anywhere, those in none last."""
    most = table.groupby("event")["share"].max().sort_values(ascending=False)
    waits = [str(name) for name in most.index if name != NO_WAIT][:SHOWN]
    return [*waits, *([NO_WAIT] if NO_WAIT in most.index else [])]


def _said(table: pd.DataFrame) -> dict[Hashable, str]:
    firsts = table.drop_duplicates("treatment").to_dict("records")
    return {
        row["treatment"]: f"n = {row['trials']:g} trials\n{row['samples']:,.0f} samples\n"
        f"{row['backends']:.2f} at a time"
        for row in firsts
    }


DATABASE_WAITS = View(
    "database_waits", TITLE, database_waits_table, draw_database_waits, suits=has_waits
)
