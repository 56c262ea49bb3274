"""Does a non-blocking database driver alone make the inference service faster?"""

from __future__ import annotations

from itertools import product
from typing import Literal

from pydantic import Field

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast, Remark
from perflab.systems.inference import service
from perflab.systems.inference.published_load import as_published, published_rps
from perflab.systems.inference.service import InferenceParameters, RoundTrip, Runtime
from perflab.trials.plan import Treatment

DRIVERS = ("psycopg2", "asyncpg")


class SyncVsAsyncParameters(InferenceParameters):
    """Parameters of the driver study; ``round_trip_ms`` and ``pool_minconn`` are factors."""

    runtime: Runtime = Field(
        default="onnx", description="what computes the predictions: scikit-learn or ONNX Runtime"
    )
    synchronous_commit: Literal["on", "off"] = Field(
        default="on", description="whether a commit waits until the disk has it"
    )
    round_trip_ms: tuple[RoundTrip, ...] = Field(
        default=(0.0, 5.0),
        min_length=1,
        description="levels to compare: delay that the link adds to a round trip to the database, "
        "in ms",
    )
    pool_minconn: tuple[Literal["max", "1", 1], ...] = Field(
        default=("max",),
        min_length=1,
        description="levels to compare: connections that a pool keeps open; psycopg2's closes "
        "every one above that when it is given back",
    )


def _levels(parameters: SyncVsAsyncParameters) -> dict[str, tuple[str, ...]]:
    return {
        "driver": DRIVERS,
        "round_trip_ms": tuple(dict.fromkeys(f"{ms:.12g}" for ms in parameters.round_trip_ms)),
        "pool_minconn": tuple(dict.fromkeys(str(level) for level in parameters.pool_minconn)),
    }


def _treatments(parameters: SyncVsAsyncParameters) -> list[Treatment]:
    treatments = []
    for driver, round_trip, minconn in product(*_levels(parameters).values()):
        load = service.workload(parameters, service.endpoint(driver))  # type: ignore[arg-type]
        plan = service.stack(
            parameters,
            runtime=parameters.runtime,
            minconn=minconn,
            synchronous_commit=parameters.synchronous_commit,
            round_trip_ms=float(round_trip),
        )
        levels = {"driver": driver, "round_trip_ms": round_trip, "pool_minconn": minconn}
        label = f"{driver}, {round_trip} ms to the database"
        if len(_levels(parameters)["pool_minconn"]) > 1:
            label += f", minconn {minconn}"
        treatments.append(service.treatment(levels, label, plan, load))
    return treatments


def _contrasts(parameters: SyncVsAsyncParameters) -> list[Contrast]:
    levels = _levels(parameters)
    more = published_rps("async driver (asyncpg), 4 workers, pool 50")
    less = published_rps("sync driver (psycopg2), 4 workers, pool 50")
    contrasts = []
    for round_trip, minconn in product(levels["round_trip_ms"], levels["pool_minconn"]):
        setting = {"round_trip_ms": round_trip, "pool_minconn": minconn}
        compared = as_published(parameters, round_trip_ms=float(round_trip), pool_minconn=minconn)
        contrasts.append(
            Contrast(
                name=f"async against sync, {round_trip} ms, minconn {minconn}",
                claim="asyncpg gives about 1.5 times the throughput of psycopg2 "
                f"(round trip {round_trip} ms, pool minimum {minconn})",
                response="throughput_rps",
                numerator={"driver": "asyncpg", **setting},
                denominator={"driver": "psycopg2", **setting},
                published_ratio=more / less if compared else None,
                published_direction="greater",
                source=f"inference study, results table ({more:g} against {less:g} requests/s)",
            )
        )
    return contrasts


def _warnings(parameters: SyncVsAsyncParameters) -> list[Remark]:
    nearest = min(parameters.round_trip_ms)
    minconn = parameters.pool_minconn
    chosen = "max" if "max" in minconn else minconn[0]
    return service.load_warnings(parameters, round_trip_ms=nearest, pool_minconn=chosen)


EXPERIMENT = Experiment(
    name="sync_vs_async",
    title="Drivers: psycopg2 in threads against asyncpg",
    question="Does a non-blocking driver alone raise throughput, and at which distance from "
    "the database?",
    parameters=SyncVsAsyncParameters,
    in_main_job=True,
    treatments=_treatments,
    factors=_levels,
    contrasts=_contrasts,
    warnings=_warnings,
)
