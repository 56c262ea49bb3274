"""Where commits wait, in the database."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from perflab.analysis.accounts.commit_waits import NO_WAIT, has_waits, wait_shares
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, RowChart
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, PALETTE, in_order, styles_of
from perflab.figures.view import View

WAITS_TITLE = "where commits wait, in the database"
# Bars of more events would be too thin to see.
MOST_EVENTS = 5
TICKS = {0.25 * n: f"{25 * n}%" for n in range(5)}


def draw_database_waits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw, per treatment, a bar for each of the events with the largest shares."""
    events = _events(table)
    colors = {name: FAINT if name == NO_WAIT else PALETTE[n] for n, name in enumerate(events)}
    chart = RowChart(
        WAITS_TITLE,
        "Share of the samples of active backends, by wait event, mean over valid trials with its"
        " 95% t interval. What reads them is a backend too: on a core that they share, no other"
        " can be seen running while it reads.",
        layers=(Bars(colors, "{:.0%}".format, by="event", missing="never seen"),),
        panels={"": Axis("share of active backends", ends=(0, 1.3), ticks=TICKS)},
        value="share",
        row_in=max(0.5, 0.19 * len(events) + 0.14),
        said=_words_beside,
        nothing="no active backend",
    )
    return chart.draw(table, page)


def _events(table: pd.DataFrame) -> list[str]:
    """Return the events with the largest shares in any treatment; ``NO_WAIT`` is last."""
    most = table.groupby("event")["share"].max().sort_values(ascending=False)
    waits = [str(name) for name in most.index if name != NO_WAIT][:MOST_EVENTS]
    return [*waits, *([NO_WAIT] if NO_WAIT in most.index else [])]


def _words_beside(table: pd.DataFrame) -> dict[Hashable, str]:
    firsts = table.drop_duplicates("treatment").to_dict("records")
    return {
        row["treatment"]: f"n = {row['trials']:g} trials\n{row['samples']:,.0f} samples\n"
        f"{row['backends']:.2f} at a time"
        for row in firsts
    }


DATABASE_WAITS = View(
    "database_waits", WAITS_TITLE, lambda run: in_order(wait_shares(run), styles_of(run.record)),
    draw_database_waits, suits=has_waits,
)  # fmt: skip
