"""What commit off gains, against what a commit felt of the flush."""

from __future__ import annotations

from typing import Any

import pandas as pd

from perflab.analysis.results import AgainstStudy
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Marks, Plane, Planes, Rules
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PUBLISHED_COLOR, Style, appearance
from perflab.figures.view import PUBLISHED, View, varies
from perflab.statistics.in_words import counted
from perflab.systems.inference.experiments.flush_map import FACTORS, flush_map

MAP_TITLE = "where the published gain would appear"
# A commit may feel nothing, which a logarithmic axis cannot show.
LEAST_MS = 0.1
FELT = ["felt_ms", "felt_low", "felt_high"]
CELL, NO_EFFECT, RINGED = "cell", "no effect", "as published"


def draw_flush_map(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a line for each number of workers and connections, and the published ratio."""
    places = zip(table["workers"], table["pool_size"], strict=True)
    table = table.assign(
        group=[f"{counted(n, 'worker')}, {counted(size, 'connection')}" for n, size in places]
    )
    groups = enumerate(table["group"].unique())
    styles = {name: Style(*appearance(index), name) for index, name in groups}
    style: dict[str, Any] = {"by": "group", "styles": styles}
    is_ringed = AgainstStudy.AS_PUBLISHED in set(table["result"])
    chart = Planes(
        MAP_TITLE,
        "Every point is one setting, with 95% intervals over blocks both ways. Across: what a"
        " commit felt of the flush (median commit phase, on less off); commits that wait together"
        f" share a flush.{' Ringed: as published.' * is_ringed}",
        layers=(
            Rules((NO_EFFECT,), NO_EFFECT, along="y", ls="-"),
            Rules((PUBLISHED,), PUBLISHED, along="y", color=PUBLISHED_COLOR),
            Lines((CELL,), keyed=False, how={"lw": 0.9, "alpha": 0.6}, **style),
            Marks((RINGED,), "o", RINGED, color=INK, hollow=True, size=10),
            Intervals((CELL,), "felt_low", "felt_high", lw=0.7, size=0, keyed=False, **style),
            Intervals((CELL,), along="y", lw=1.1, size=4.5, **style),
        ),
        planes=Plane(
            Axis("what a commit felt, ms (log)", log=True),
            Axis("commit off / on, throughput (log)", log=True),
        ),
        x="felt_ms",
        y="ratio",
    )
    return chart.draw(_map_as_drawn(table), page)


def _map_as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting, its ring, the published ratio, and no effect."""
    cells = table.dropna(subset=["felt_ms", "ratio"]).sort_values("felt_ms")
    cells[FELT] = cells[FELT].clip(lower=LEAST_MS)
    published = table[["published"]].dropna().drop_duplicates()
    parts = [
        cells.assign(what=CELL),
        cells[cells["result"] == AgainstStudy.AS_PUBLISHED].assign(what=RINGED),
        published.rename(columns={"published": "ratio"}).assign(what=PUBLISHED),
        pd.DataFrame({"ratio": [1.0], "what": NO_EFFECT}),
    ]
    return pd.concat(parts, ignore_index=True)


FLUSH_MAP = View(
    "flush_map", MAP_TITLE, flush_map, draw_flush_map, varies(*FACTORS), of_findings=True
)
