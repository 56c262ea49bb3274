"""The stack, load and parameters that experiments on the inference service share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab.instruments import STANDARD, DatabaseWaits, FlushProbe, ServerCount
from perflab.load.workload import ClosedLoop, Connections, Request, Workload
from perflab.recordings import Remark, published_value
from perflab.stacks.plan import Link, Node, RoundTripMs, StackPlan
from perflab.stacks.spec import load_service
from perflab.trials.experiment import ReadyStack
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import (
    ExplainedParameters,
    PresetParameters,
    Requests,
    WarmupRequests,
)

STUDY, TABLE = "inference", "results table"
# The published row of each treatment of the durability and driver studies.
COMMITS = {
    "on": "ONNX + DB, synchronous_commit=on",
    "off": "ONNX + DB, synchronous_commit=off",
    "none": "ONNX, no DB",
}
DRIVERS = {
    "psycopg2": "sync driver (psycopg2), 4 workers, pool 50",
    "asyncpg": "async driver (asyncpg), 4 workers, pool 50",
}
PER_CONNECTION = ("workload", "all", "requests_per_connection")
# Of the main job: short trials a few seconds apart, as the speed of a shared machine changes within
# tens of seconds. Services start afresh for each block: blocks that share a start count once.
SHORT_TRIALS = {
    "fresh_blocks": 1, "requests": 450, "warmup_requests": 150, "start_requests": 300,
}  # fmt: skip
DATABASE = "postgres"
# The first row of scikit-learn's breast cancer data set.
FEATURES = (
    17.99, 10.38, 122.8, 1001.0, 0.1184, 0.2776, 0.3001, 0.1471, 0.2419, 0.07871,
    1.095, 0.9053, 8.589, 153.4, 0.006399, 0.04904, 0.05373, 0.01587, 0.03003, 0.006193,
    25.38, 17.33, 184.6, 2019.0, 0.1622, 0.6656, 0.7119, 0.2654, 0.4601, 0.1189,
)  # fmt: skip

Driver = Literal["psycopg2", "asyncpg"]
Runtime = Literal["sklearn", "onnx", "compiled"]
Workers = Annotated[int, Field(ge=1, le=64)]
WorkerLevels = Annotated[
    tuple[Workers, ...],
    Field(
        min_length=1, description="levels to compare: processes of the service (Uvicorn workers)"
    ),
]
RoundTrips = Annotated[
    tuple[RoundTripMs, ...],
    Field(
        min_length=1,
        description="levels to compare: delay that the link adds to a round trip to the database, "
        "in ms",
    ),
]
INSTRUMENTS = (*STANDARD, FlushProbe(node=DATABASE), ServerCount(), DatabaseWaits(node=DATABASE))
# Each of the two drivers has a pool; the lab has connections, too.
POOLS, OTHER_CONNECTIONS = 2, 20


def published_rps(scenario: str) -> float:
    """Return the published throughput of a row of the results table, in requests per second."""
    return published_value(STUDY, TABLE, scenario, "throughput")


class LoadParameters(ExplainedParameters, PresetParameters):
    """Load and pool, the parameters of every experiment on the inference service."""

    study: ClassVar = STUDY
    stated: ClassVar = {
        "requests": ("workload", "all", "requests"),
        "concurrency": ("workload", "all", "concurrency"),
        "workers": ("system", "driver study", "workers"),
        "pool_size": ("system", "driver study", "pool_size"),
        "round_trip_ms": ("system", "all", "added_round_trip"),
    }

    requests: Requests = 1000
    # Throughput rises for some 3 s after services start, with asyncpg by a fifth.
    warmup_requests: WarmupRequests = 2000
    start_requests: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="requests that each treatment gets before its first trial after its services "
        "started, not recorded; with them warmup_requests can be few where fresh_blocks is above 1",
    )
    concurrency: int = Field(
        default=50,
        ge=1,
        le=2000,
        description="users at a time; each waits for its answer before it asks again",
    )
    connection: Literal["per_request", "keep_alive"] = Field(
        default="per_request", description="a new TCP connection for every request, or one per user"
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset for the parameters that the experiment has."""
        reused = published_value(STUDY, *PER_CONNECTION) != 1
        connection = "keep_alive" if reused else "per_request"
        return {**super().published_values(), "connection": connection}

    @model_validator(mode="after")
    def _check_users(self) -> LoadParameters:
        if self.concurrency > self.requests:
            raise ValueError(
                f"concurrency = {self.concurrency} is more than requests = {self.requests}: some "
                "users would never send"
            )
        return self

    @model_validator(mode="after")
    def _check_pool(self) -> LoadParameters:
        """Refuse a pool that leaves a worker without a connection; both may have levels."""
        pool_size, workers = min(self._levels("pool_size")), max(self._levels("workers"))
        if pool_size < workers:
            raise ValueError(
                f"pool_size = {pool_size} is less than workers = {workers}: every worker "
                "needs at least one connection (pool_size counts all workers together)"
            )
        return self

    def _levels(self, name: str) -> tuple[int, ...]:
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)


class PooledParameters(LoadParameters):
    """Parameters of experiments that do not vary the pool."""

    pool_size: int = Field(
        default=50,
        ge=1,
        le=200,
        description="connections to the database, over all workers together",
    )


class InferenceParameters(PooledParameters):
    """Parameters of experiments that do not vary the workers."""

    workers: int = Field(
        default=4, ge=1, le=64, description="processes of the service (Uvicorn workers)"
    )


def stack(
    parameters: LoadParameters,
    *,
    workers: int,
    pool_size: int,
    flush_us: int = 0,
    runtime: Runtime = "onnx",
    minconn: str = "max",
    synchronous_commit: str = "on",
    round_trip_ms: float = 0.0,
    writes: bool = True,
) -> StackPlan:
    """Return PostgreSQL, the link, and the inference service wired together.

    The rows are counted if the load ``writes`` any.
    """
    return StackPlan(
        nodes=(
            Node(
                name="postgres",
                service="postgres",
                placement="database",
                settings={
                    "synchronous_commit": synchronous_commit,
                    "flush_us": flush_us,
                    **({"preloaded": "pg_stat_statements"} if parameters.why else {}),
                },
            ),
            Link(round_trip_ms=round_trip_ms).node("postgres"),
            Node(
                name="inference",
                service="inference",
                needs={"database": "link"},
                settings={
                    "runtime": runtime,
                    "workers": workers,
                    "pool_size": pool_size,
                    "pool_minconn": minconn,
                },
            ),
        ),
        database="postgres",
        reset=("TRUNCATE inferences RESTART IDENTITY", "CHECKPOINT"),
        count="SELECT count(*) FROM inferences" if writes else "",
    )


def with_room(treatments: Sequence[Treatment]) -> list[Treatment]:
    """Return treatments whose database has room for the pools of all services side by side.

    Treatments with different settings have a service each, and all services keep their connections
    while they are paused.
    """
    services = [treatment.stack.node("inference").settings for treatment in treatments]
    pools = {tuple(sorted(settings.items())): int(settings["pool_size"]) for settings in services}
    setting = load_service(DATABASE).settings["max_connections"]
    needed = POOLS * sum(pools.values()) + OTHER_CONNECTIONS
    room = min(max(int(setting.default), needed), int(setting.maximum or needed))
    roomy = []
    for treatment in treatments:
        database, *others = treatment.stack.nodes
        settings = {**database.settings, "max_connections": room}
        nodes = (database.model_copy(update={"settings": settings}), *others)
        plan = treatment.stack.model_copy(update={"nodes": nodes})
        roomy.append(treatment.model_copy(update={"stack": plan}))
    return roomy


def endpoint(driver: Driver, database_write: bool = True) -> str:
    """Return the path of a driver's endpoint, with or without the database write."""
    path = "/inferences" if database_write else "/inferences_no_db"
    return f"{path}_async" if driver == "asyncpg" else path


def workload(parameters: LoadParameters, path: str) -> Workload:
    """Return the published closed loop on an endpoint, kept up until its last counted answer.

    The study does not say what its tool did; if the tool let the load run out, the last 50 of 1,000
    requests lowered its mean response time by 2 to 3%.
    """
    return Workload(
        request=Request(
            node="inference",
            method="POST",
            path=path,
            headers={"Content-Type": "application/json"},
            body=json.dumps({"features": FEATURES}),
            expect_body='"label":',
        ),
        arrivals=ClosedLoop(
            users=parameters.concurrency,
            requests=parameters.requests,
            warmup_requests=parameters.warmup_requests,
            keep_up=True,
        ),
        connections=Connections(reuse=parameters.connection),
    )


def treatment(
    parameters: LoadParameters,
    levels: Mapping[str, str],
    label: str,
    plan: StackPlan,
    path: str,
) -> Treatment:
    """Return a treatment that is named after its levels, with the published load on a path."""
    load, at_start = workload(parameters, path), None
    if parameters.start_requests:
        arrivals = ClosedLoop(users=parameters.concurrency, requests=parameters.start_requests)
        at_start = load.model_copy(update={"arrivals": arrivals})
    return Treatment(
        name=",".join(f"{factor}={level}" for factor, level in levels.items()),
        label=label,
        levels=dict(levels),
        stack=plan,
        workload=load,
        instruments=INSTRUMENTS,
        at_start=at_start,
    )


def load_warnings(parameters: LoadParameters, **levels: Any) -> list[Remark]:
    """Warn if the load or the set-up is not as published."""
    return parameters.not_compared("inference.load", **levels)


USUAL = InferenceParameters()

STACKS = (
    ReadyStack("inference", lambda: stack(USUAL, workers=USUAL.workers, pool_size=USUAL.pool_size)),
)
