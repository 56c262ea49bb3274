"""At which flush cost, workers and distance would the published ratios appear?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated

from pydantic import Field, model_validator

from perflab.recordings import Contrast
from perflab.stacks.plan import RoundTripMs
from perflab.systems.inference import service
from perflab.systems.inference.service import (
    Driver,
    LoadParameters,
    OneOrMore,
    Workers,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

CommitDelay = Annotated[int, Field(ge=0, le=100_000)]
PLACE = ("workers", "round_trip_ms")
# With synchronous_commit=off nobody waits for a flush, however long it takes.
NO_DELAY = "0"


class FlushMapParameters(LoadParameters):
    """Parameters of the map: a delay planted before every flush, workers, and distance."""

    requests: int = Field(
        default=200, ge=10, le=1_000_000, description="requests that count, in each trial"
    )
    warmup_requests: int = Field(
        default=50, ge=0, le=1_000_000, description="requests before them, recorded apart"
    )
    commit_delay_us: Annotated[tuple[CommitDelay, ...], OneOrMore] = Field(
        default=(0, 20_000, 100_000),
        min_length=1,
        description="levels to compare: pause that PostgreSQL makes before every flush, in us; "
        "one pause serves all commits that arrive in it",
    )
    workers: Annotated[tuple[Workers, ...], OneOrMore] = Field(
        default=(1, 4),
        min_length=1,
        description="levels to compare: processes of the service (Uvicorn workers)",
    )
    round_trip_ms: Annotated[tuple[RoundTripMs, ...], OneOrMore] = Field(
        default=(0.0, 5.0),
        min_length=1,
        description="levels to compare: delay that the link adds to a round trip to the database, "
        "in ms",
    )

    @model_validator(mode="after")
    def _check_pools(self) -> FlushMapParameters:
        service.check_pool(self.pool_size, max(self.workers))
        return self


def _places(parameters: FlushMapParameters) -> Iterator[dict[str, str]]:
    workers = dict.fromkeys(str(count) for count in parameters.workers)
    trips = dict.fromkeys(f"{ms:.12g}" for ms in parameters.round_trip_ms)
    for chosen in product(workers, trips):
        yield dict(zip(PLACE, chosen, strict=True))


def _delays(parameters: FlushMapParameters) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(delay) for delay in parameters.commit_delay_us))


def _on(driver: str, delay: str, place: Mapping[str, str]) -> dict[str, str]:
    return {"driver": driver, "synchronous_commit": "on", "commit_delay_us": delay, **place}


def _off(place: Mapping[str, str]) -> dict[str, str]:
    return {
        "driver": "psycopg2",
        "synchronous_commit": "off",
        "commit_delay_us": NO_DELAY,
        **place,
    }


def _treatments(parameters: FlushMapParameters) -> list[Treatment]:
    treatments = []
    for place in _places(parameters):
        treatments.append(_treatment(parameters, _off(place)))
        for delay in _delays(parameters):
            treatments += [
                _treatment(parameters, _on(driver, delay, place))
                for driver in ("psycopg2", "asyncpg")
            ]
    return treatments


def _treatment(parameters: FlushMapParameters, levels: Mapping[str, str]) -> Treatment:
    driver: Driver = "asyncpg" if levels["driver"] == "asyncpg" else "psycopg2"
    plan = service.stack(
        parameters,
        workers=int(levels["workers"]),
        commit_delay_us=int(levels["commit_delay_us"]),
        synchronous_commit=levels["synchronous_commit"],
        round_trip_ms=float(levels["round_trip_ms"]),
    )
    is_on = levels["synchronous_commit"] == "on"
    commit = f"on, +{int(levels['commit_delay_us']) / 1000:g} ms" if is_on else "off"
    label = f"{driver}, commit {commit}, {_words(levels)}"
    load = service.workload(parameters, service.endpoint(driver))
    return service.treatment(levels, label, plan, load)


def _words(place: Mapping[str, str]) -> str:
    """Return workers and distance in words."""
    several = "" if place["workers"] == "1" else "s"
    return f"{place['workers']} worker{several}, {place['round_trip_ms']} ms away"


def _contrasts(parameters: FlushMapParameters) -> list[Contrast]:
    return [
        contrast
        for place in _places(parameters)
        for delay in _delays(parameters)
        for contrast in (_flush(delay, place), _driver(delay, place))
    ]


def _flush(delay: str, place: Mapping[str, str]) -> Contrast:
    return Contrast(
        name=f"off against on, +{delay} us, {_words(place)}",
        claim=f"beyond the study: synchronous_commit off against on (flush + {delay} us, "
        f"{_words(place)})",
        response="throughput_rps",
        numerator=_off(place),
        denominator=_on("psycopg2", delay, place),
    )


def _driver(delay: str, place: Mapping[str, str]) -> Contrast:
    return Contrast(
        name=f"async against sync, +{delay} us, {_words(place)}",
        claim=f"beyond the study: asyncpg against psycopg2 (flush + {delay} us, {_words(place)})",
        response="throughput_rps",
        numerator=_on("asyncpg", delay, place),
        denominator=_on("psycopg2", delay, place),
    )


EXPERIMENT = Experiment(
    name="flush_map",
    title="Where the published ratios would appear: flush cost, workers, distance",
    question="At which cost of a flush, with how many workers and at which distance from the "
    "database would the published ratios appear?",
    parameters=FlushMapParameters,
    treatments=lambda parameters: service.with_room(_treatments(parameters)),
    factors=lambda parameters: {
        "driver": ("psycopg2", "asyncpg"),
        "synchronous_commit": ("on", "off"),
        "commit_delay_us": tuple(dict.fromkeys((NO_DELAY, *_delays(parameters)))),
        "workers": tuple(dict.fromkeys(str(count) for count in parameters.workers)),
        "round_trip_ms": tuple(dict.fromkeys(f"{ms:.12g}" for ms in parameters.round_trip_ms)),
    },
    contrasts=_contrasts,
    warnings=lambda parameters: service.uneven_pools(parameters.pool_size, parameters.workers),
)
