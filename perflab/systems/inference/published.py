"""The published absolutes of the inference study, by the treatments that they were measured of."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from perflab.figures.plots.published_marks import OTHER_LOAD, SAME_LOAD
from perflab.recordings import Run, published
from perflab.systems.inference.published_load import published_settings

STUDY, TABLE = "inference", "results table"
MEASURES = {"throughput_rps": "throughput", "mean_ms": "mean_latency"}
COMMITS = {
    "on": "ONNX + DB, synchronous_commit=on",
    "off": "ONNX + DB, synchronous_commit=off",
    "none": "ONNX, no DB",
}
WRITES = {"yes": COMMITS["on"], "no": COMMITS["none"]}
DRIVERS = {
    "psycopg2": "sync driver (psycopg2), 4 workers, pool 50",
    "asyncpg": "async driver (asyncpg), 4 workers, pool 50",
}
LOAD = ("concurrency", "requests", "connection")


def published_absolutes(run: Run, response: str) -> pd.DataFrame:
    """Return what was published of a response (throughput_rps or mean_ms), by treatment.

    Columns: treatment, value, load (whether the run's load and pool are the published ones). The
    published mean latency is ab's, concurrency / throughput: the mean response time of a closed
    loop without think time. Treatments of which nothing was published have no row.
    """
    table = published(STUDY)
    known = table[(table["place"] == TABLE) & (table["measure"] == MEASURES.get(response, ""))]
    values = dict(zip(known["scenario"], known["value"].astype(float), strict=True))
    rows = []
    for item in run.record.treatments:
        row = scenario(run.record.experiment, item.levels, run.record.parameters)
        if row is not None and row in values:
            load = SAME_LOAD if _is_published_load(run, row) else OTHER_LOAD
            rows.append({"treatment": item.name, "value": values[row], "load": load})
    return pd.DataFrame(rows, columns=["treatment", "value", "load"])


def scenario(
    experiment: str, levels: Mapping[str, str], parameters: Mapping[str, object]
) -> str | None:
    """Return the row of the published results that a treatment repeats; None where there is none.

    The durability study does not state its workers and pool, so none are asked for there. The
    driver study was at a database next door with 4 workers; its pool's minimum and meaning are not
    stated.
    """
    if experiment == "sync_vs_async":
        is_near = levels.get("round_trip_ms") == "0" and levels.get("workers", "4") == "4"
        waits = parameters.get("synchronous_commit", "on") == "on"
        return DRIVERS.get(levels.get("driver", "")) if is_near and waits else None
    if experiment == "inference_runtime":
        has_onnx = levels.get("runtime") == "onnx"
        return WRITES.get(levels.get("database_write", "")) if has_onnx else None
    is_usual = parameters.get("driver", "psycopg2") == "psycopg2"
    if experiment == "synchronous_commit" and is_usual and not parameters.get("round_trip_ms"):
        return COMMITS.get(levels.get("synchronous_commit", ""))
    return None


def _is_published_load(run: Run, row: str) -> bool:
    stated = published_settings()
    names = (*LOAD, "pool_size") if row in DRIVERS.values() else LOAD
    return all(run.record.parameters.get(name) == stated[name] for name in names)
