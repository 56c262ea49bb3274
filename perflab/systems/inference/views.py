"""The views of the inference service's runs, with that of the flush map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.analysis.results import AgainstStudy
from perflab.figures import (
    CAUSES,
    CORE_TIME,
    DATABASE_WAITS,
    EFFECT,
    FLUSH_COST,
    IN_FLIGHT,
    LATENCY_CPU,
    LATENCY_ECDF,
    rate_view,
    throughput_view,
    time_breakdown_view,
)
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Marks, Plane, Planes, Rules
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PUBLISHED_COLOR, Style, appearance
from perflab.figures.view import OTHER_LOAD, PUBLISHED, SAME_LOAD, View, varies
from perflab.recordings import Run, published
from perflab.statistics.in_words import counted
from perflab.systems.inference.experiments.flush_map import FACTORS, flush_map
from perflab.systems.inference.stacks import COMMITS, DRIVERS, STUDY, TABLE, InferenceParameters

MEASURES = {"throughput_rps": "throughput", "mean_ms": "mean_latency"}
LOAD = ("concurrency", "connection")
MAP_TITLE = "where the published gain would appear"
# A commit may feel nothing, which a logarithmic axis cannot show.
LEAST_MS = 0.1
FELT = ["felt_ms", "felt_low", "felt_high"]
CELL, NO_EFFECT, RINGED = "cell", "no effect", "as published"
LATENCY_RATE = rate_view(
    "latency_rate",
    "response times against the rate of requests",
    {f"p{share}_ms": f"p{share}, ms (log)" for share in (50, 95, 99)},
)


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


def published_absolutes(run: Run, response: str) -> pd.DataFrame:
    """Return the published values of a response (throughput_rps or mean_ms), by treatment.

    Columns: treatment, value, load (whether the run's load and pool are the published ones). The
    published mean latency is ab's, concurrency / throughput: the mean response time of a closed
    loop without think time. Treatments without a published value have no row.
    """
    table = published(STUDY)
    table = table[(table["place"] == TABLE) & (table["measure"] == MEASURES.get(response, ""))]
    values = table.set_index("scenario")["value"].astype(float)
    rows = []
    for treatment in run.record.treatments:
        row = scenario(run.record.experiment, treatment.levels, run.record.parameters)
        if row is not None and row in values:
            load = SAME_LOAD if _is_published_load(run, row) else OTHER_LOAD
            rows.append({"treatment": treatment.name, "value": values[row], "load": load})
    return pd.DataFrame(rows, columns=["treatment", "value", "load"])


def scenario(
    experiment: str, levels: Mapping[str, str], parameters: Mapping[str, object]
) -> str | None:
    """Return the row of the published results that a treatment repeats, or None.

    The durability study does not state its workers and pool, so any match it. The driver study had
    a database next door and 4 workers; its pool's minimum and meaning are not stated.
    """
    if experiment == "sync_vs_async":
        is_near = levels.get("round_trip_ms") == "0" and levels.get("workers", "4") == "4"
        waits = parameters.get("synchronous_commit", "on") == "on"
        return DRIVERS.get(levels.get("driver", "")) if is_near and waits else None
    if experiment == "inference_runtime":
        has_onnx = levels.get("runtime") == "onnx"
        writes = {"yes": COMMITS["on"], "no": COMMITS["none"]}
        return writes.get(levels.get("database_write", "")) if has_onnx else None
    is_usual = parameters.get("driver", "psycopg2") == "psycopg2" and "rate" not in levels
    if experiment == "synchronous_commit" and is_usual and not parameters.get("round_trip_ms"):
        return COMMITS.get(levels.get("synchronous_commit", ""))
    return None


def _is_published_load(run: Run, row: str) -> bool:
    stated = InferenceParameters.published_values()
    names = (*LOAD, "pool_size") if row in DRIVERS.values() else LOAD
    return all(run.record.parameters.get(name) == stated[name] for name in names)


FLUSH_MAP = View(
    "flush_map", MAP_TITLE, flush_map, draw_flush_map, varies(*FACTORS), of_findings=True
)

VIEWS = (
    EFFECT,
    LATENCY_RATE,
    FLUSH_MAP,
    throughput_view(published_absolutes),
    LATENCY_ECDF,
    time_breakdown_view(published_absolutes),
    CORE_TIME,
    IN_FLIGHT,
    DATABASE_WAITS,
    CAUSES,
    LATENCY_CPU,
    FLUSH_COST,
)
