"""The published load and set-up of the inference service, and a run's differences from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.figures.points import OTHER_LOAD, SAME_LOAD
from perflab.recordings import Run, published, published_value
from perflab.recordings.display import plain
from perflab.trials.experiment import RunParameters

STUDY = "inference"
# The published row of each parameter that the study states.
PUBLISHED = {
    "requests": ("workload", "all", "requests"),
    "concurrency": ("workload", "all", "concurrency"),
    "workers": ("system", "driver study", "workers"),
    "pool_size": ("system", "driver study", "pool_size"),
    "round_trip_ms": ("system", "all", "added_round_trip"),
}
PER_CONNECTION = ("workload", "all", "requests_per_connection")
# Parameters that say how often and where something is measured, and not what.
NO_SETTINGS = frozenset({*RunParameters.model_fields, "preset", "warmup_requests"})


def as_published(parameters: RunParameters, **levels: Any) -> bool:
    """Return whether published sizes may be compared; see :func:`differences`."""
    return not differences(parameters, **levels)


def differences(parameters: RunParameters, **levels: Any) -> list[str]:
    """Return the differences of a run from the study, as sentences.

    A parameter that the study states must have the stated value. Any other (such as the pool's
    minimum) must have its default, because one could else try settings until the size fits.

    Parameters
    ----------
    levels
        The level of each parameter that is a factor.
    """
    stated = published_settings()
    texts = []
    for name, field in type(parameters).model_fields.items():
        if name in NO_SETTINGS:
            continue
        default = field.get_default()
        if name in levels and isinstance(default, tuple):
            default = default[0]
        value, expected = levels.get(name, getattr(parameters, name)), stated.get(name, default)
        if str(value) != str(expected):
            whose = "published" if name in stated else "not published, by default"
            texts.append(f"{name} is {plain(value)} ({whose}: {plain(expected)})")
    return texts


def published_settings() -> dict[str, Any]:
    """Return the parameters of the published load and set-up."""
    numbers: dict[str, Any] = {
        name: published_value(STUDY, *place) for name, place in PUBLISHED.items()
    }
    for name in ("requests", "concurrency", "workers", "pool_size"):
        numbers[name] = int(numbers[name])
    reused = published_value(STUDY, *PER_CONNECTION) != 1
    return {**numbers, "connection": "keep_alive" if reused else "per_request"}


def published_rps(scenario: str) -> float:
    """Return the published throughput of a row of the results table, in requests per second."""
    return published_value(STUDY, "results table", scenario, "throughput")


TABLE = "results table"
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
    """Return the published values of a response (throughput_rps or mean_ms), by treatment.

    Columns: treatment, value, load (whether the run's load and pool are the published ones). The
    published mean latency is ab's, concurrency / throughput: the mean response time of a closed
    loop without think time. Treatments without a published value have no row.
    """
    table = published(STUDY)
    rows_of_measure = table[
        (table["place"] == TABLE) & (table["measure"] == MEASURES.get(response, ""))
    ]
    values = dict(
        zip(rows_of_measure["scenario"], rows_of_measure["value"].astype(float), strict=True)
    )
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
        return WRITES.get(levels.get("database_write", "")) if has_onnx else None
    is_usual = parameters.get("driver", "psycopg2") == "psycopg2"
    if experiment == "synchronous_commit" and is_usual and not parameters.get("round_trip_ms"):
        return COMMITS.get(levels.get("synchronous_commit", ""))
    return None


def _is_published_load(run: Run, row: str) -> bool:
    stated = published_settings()
    names = (*LOAD, "pool_size") if row in DRIVERS.values() else LOAD
    return all(run.record.parameters.get(name) == stated[name] for name in names)
