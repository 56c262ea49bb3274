"""Requests in flight over time, and where the others are."""

from __future__ import annotations

import math

import pandas as pd

from perflab.analysis.users_elsewhere import (
    CLIENT,
    CONNECTION,
    ELSEWHERE,
    LAW,
    SERVER,
    in_flight,
    in_flight_varies,
)
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Bands,
    Lines,
    Plane,
    Planes,
)
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PALETTE, Style, in_order
from perflab.figures.view import View
from perflab.statistics.in_words import number

IN_FLIGHT_TITLE = "requests in flight over time, and where the other users are"
COLORS = {SERVER: PALETTE[0], CONNECTION: PALETTE[1], CLIENT: PALETTE[2], ELSEWHERE: PALETTE[4]}
PLACES = {state: Style(color, "", state) for state, color in COLORS.items()}
OF_LAW = {LAW: Style(INK, "", "Little's law")}
PANEL_IN = 2.0
ROOM = 1.3


def draw_in_flight(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw one panel per treatment, with a line and a band for each state of requests."""
    top = max(1.0, float(table["high"].max())) * ROOM
    law = {"lw": 1.0, "ls": (0, (4, 3))}
    chart = Planes(
        IN_FLIGHT_TITLE,
        "Lines: median over valid trials of the mean in each window of time, from the begin of the"
        " measured stage to the end of the shortest trial; bands: smallest to largest trial."
        " Dashed: what Little's law says must wait for the server, answers per second × mean time"
        " from sending to the last byte.",
        layers=(
            Bands(by="state", styles={**PLACES, **OF_LAW}),
            Lines(by="state", styles=PLACES, how={"lw": 1.3}),
            Lines(by="state", styles=OF_LAW, how=law),
        ),
        planes=lambda rows, drawn: _planes(rows, drawn, Axis("requests, or users", ends=(0, top))),
        y="median",
        height_in=PANEL_IN + 0.5,
        further_in=PANEL_IN,
        share_y=True,
    )
    return chart.draw(_with_the_laws_ends(table), page)


def _with_the_laws_ends(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the rows of the law at both ends of each treatment's time."""
    law, ends = table["state"] == LAW, table.groupby("treatment")["t_s"].agg(["min", "max"])
    parts = [
        table[law].assign(t_s=table.loc[law, "treatment"].map(ends[end])) for end in ("min", "max")
    ]
    return pd.concat([table[~law], *parts], ignore_index=True)


def _planes(table: pd.DataFrame, page: Page, y: Axis) -> dict[str, Plane]:
    x = Axis("s", ends=(0, None))
    words = {str(name): _words(rows) for name, rows in table.groupby("treatment")}
    return {
        name: Plane(x, y, "\n".join(filter(None, (style.label, words.get(name)))))
        for name, style in page.styles.items()
    }


def _words(rows: pd.DataFrame) -> str:
    law = rows[rows["state"] == LAW].iloc[0]
    waiting, elsewhere = _mean(rows, SERVER), _mean(rows, ELSEWHERE)
    among = f", {number(elsewhere)} elsewhere" if math.isfinite(elsewhere) else ""
    trials = int(law["trials"])
    return f"{number(waiting)} at the server (law {number(law['median'])}){among}, n = {trials}"


def _mean(rows: pd.DataFrame, state: str) -> float:
    return float(rows.loc[rows["state"] == state, "median"].mean())


IN_FLIGHT = View(
    "in_flight", IN_FLIGHT_TITLE,
    lambda run: in_order(in_flight(run), [item.name for item in run.record.treatments]),
    draw_in_flight, suits=in_flight_varies,
)  # fmt: skip
