"""The views of the inference service's runs, and what was published for a treatment."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

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
from perflab.figures.view import OTHER_LOAD, SAME_LOAD
from perflab.recordings import Run, published
from perflab.systems.inference.map_of_flushes import FLUSH_MAP
from perflab.systems.inference.stacks import COMMITS, DRIVERS, STUDY, TABLE, InferenceParameters

MEASURES = {"throughput_rps": "throughput", "mean_ms": "mean_latency"}
LOAD = ("concurrency", "connection")
LATENCY_RATE = rate_view(
    "latency_rate",
    "response times against the rate of requests",
    {f"p{share}_ms": f"p{share}, ms (log)" for share in (50, 95, 99)},
)


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
