"""The map: both published ratios over the flush cost that commits felt, workers and distance."""

from __future__ import annotations

from typing import Any

import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Marks, Plane, Planes, Rules
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PALETTE, Look, appearance
from perflab.figures.view import View
from perflab.systems.inference.analysis.ratio_map import (
    DRIVER,
    FLUSH,
    INSIDE,
    flush_map,
    is_flush_map,
)

TITLE = "where the published ratios would appear"
# A commit may feel nothing, which a logarithmic axis cannot show.
LEAST_MS = 0.1
FELT = ["felt_ms", "felt_low", "felt_high"]
PANELS = {FLUSH: "commit off / on, throughput", DRIVER: "asyncpg / psycopg2, throughput"}
CELL, PUBLISHED, NO_EFFECT = "cell", "published", "no effect"


def draw_flush_map(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per ratio: a line per workers and distance, and the published ratio."""
    places = zip(table["workers"], table["round_trip_ms"], strict=True)
    table = table.assign(group=[_words(*index) for index in places])
    groups = enumerate(table["group"].unique())
    looks = {name: Look(*appearance(index), name) for index, name in groups}
    style: dict[str, Any] = {"by": "group", "looks": looks}
    chart = Planes(
        TITLE,
        "Every point is one setting, with 95% intervals over blocks both ways. Across: what a"
        " commit felt of the flush and of the pause planted before it (median commit phase, on less"
        " off), not the pause that was set. Ringed: the published ratio lies in the interval, and"
        " no effect does not.",
        layers=(
            Rules((NO_EFFECT,), NO_EFFECT, along="y", ls="-"),
            Rules((PUBLISHED,), PUBLISHED, along="y", color=PALETTE[1]),
            Lines((CELL,), keyed=False, how={"lw": 0.9, "alpha": 0.6}, **style),
            Marks((INSIDE,), "o", "published in the interval", color=INK, hollow=True, size=10),
            Intervals((CELL,), "felt_low", "felt_high", lw=0.7, size=0, keyed=False, **style),
            Intervals((CELL,), along="y", lw=1.1, size=4.5, **style),
        ),
        planes=_planes,
        panel="ratio_of",
        x="felt_ms",
        y="ratio",
    )
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting, its ring, each published ratio, and no effect."""
    cells = table.dropna(subset=["felt_ms", "ratio"]).sort_values("felt_ms")
    cells[FELT] = cells[FELT].clip(lower=LEAST_MS)
    published = table.drop_duplicates("ratio_of")[["ratio_of", "published"]]
    parts = [
        cells.assign(what=CELL),
        cells[cells["published_is"] == INSIDE].assign(what=INSIDE),
        published.rename(columns={"published": "ratio"}).assign(what=PUBLISHED),
        pd.DataFrame({"ratio_of": [*PANELS], "ratio": 1.0, "what": NO_EFFECT}),
    ]
    return pd.concat(parts, ignore_index=True)


def _words(workers: int, distance_ms: float) -> str:
    return f"{workers} worker{'' if workers == 1 else 's'}, {distance_ms:g} ms away"


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    x = Axis("what a commit felt, ms (log)", log=True)
    y = Axis("ratio of throughputs (log)", log=True)
    return {ratio: Plane(x, y, words) for ratio, words in PANELS.items()}


FLUSH_MAP = View("flush_map", TITLE, flush_map, draw_flush_map, suits=is_flush_map)
