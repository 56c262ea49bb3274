"""Does a non-blocking database driver alone make the inference service faster?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from perflab.recordings import Contrast, Remark, stated
from perflab.statistics.in_words import counted
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    DRIVERS,
    STUDY,
    Driver,
    PooledParameters,
    RoundTrips,
    WorkerLevels,
    published_rps,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

BOTH: tuple[Driver, ...] = ("psycopg2", "asyncpg")
PUBLISHED_WORKERS = "4"


class SyncVsAsyncParameters(PooledParameters):
    """Parameters of the driver study; distance, pool and workers are factors beside the driver."""

    synchronous_commit: Literal["on", "off"] = Field(
        default="on", description="whether a commit waits until the disk has it"
    )
    round_trip_ms: RoundTrips = (0.0, 5.0)
    pool_minconn: tuple[Literal["max", "1"], ...] = Field(
        default=("max", "1"),
        min_length=1,
        description="levels to compare: connections that a pool keeps open; psycopg2's pool closes "
        "any further one when it is given back",
    )
    workers: WorkerLevels = (4,)


def _levels(parameters: SyncVsAsyncParameters) -> dict[str, tuple[str, ...]]:
    return {
        "driver": BOTH,
        "round_trip_ms": tuple(f"{ms:.12g}" for ms in parameters.round_trip_ms),
        "pool_minconn": parameters.pool_minconn,
        "workers": tuple(map(str, parameters.workers)),
    }


def _settings(parameters: SyncVsAsyncParameters) -> Iterator[dict[str, str]]:
    """Yield the settings in which both drivers are measured.

    First the first level of every factor, then each other level by itself.
    """
    factors = {name: levels for name, levels in _levels(parameters).items() if name != "driver"}
    first = {name: levels[0] for name, levels in factors.items()}
    yield first
    for name, levels in reversed(factors.items()):
        for level in levels[1:]:
            yield {**first, name: level}


def _treatment(
    parameters: SyncVsAsyncParameters, driver: Driver, setting: Mapping[str, str]
) -> Treatment:
    plan = stacks.stack(
        parameters,
        pool_size=parameters.pool_size,
        workers=int(setting["workers"]),
        minconn=setting["pool_minconn"],
        synchronous_commit=parameters.synchronous_commit,
        round_trip_ms=float(setting["round_trip_ms"]),
    )
    levels, label = {"driver": driver, **setting}, _label(parameters, driver, setting)
    return stacks.treatment(parameters, levels, label, plan, stacks.endpoint(driver))


def _label(parameters: SyncVsAsyncParameters, driver: str, setting: Mapping[str, str]) -> str:
    """Return the driver, the distance and every other factor that the run varies."""
    levels, words = _levels(parameters), _words(setting)
    varied_words = [text for name, text in words.items() if len(levels[name]) > 1]
    return ", ".join([driver, f"{setting['round_trip_ms']} ms to the database", *varied_words])


def _words(setting: Mapping[str, str]) -> dict[str, str]:
    return {
        "pool_minconn": f"minconn {setting['pool_minconn']}",
        "workers": counted(int(setting["workers"]), "worker"),
    }


def _name(setting: Mapping[str, str]) -> str:
    """Return a contrast's name, the same in every run; published levels are left out."""
    words = _words(setting)
    parts = [f"{setting['round_trip_ms']} ms", words["pool_minconn"]]
    if setting["workers"] != PUBLISHED_WORKERS:
        parts.append(words["workers"])
    return ", ".join(["async against sync", *parts])


def _contrasts(parameters: SyncVsAsyncParameters) -> list[Contrast]:
    asyncpg, psycopg2 = (published_rps(DRIVERS[driver]) for driver in ("asyncpg", "psycopg2"))
    return [
        Contrast(
            name=_name(setting),
            claim=f"{stated(STUDY, 'claim 5')} (round trip "
            f"{setting['round_trip_ms']} ms, pool minimum {setting['pool_minconn']}, "
            f"{_words(setting)['workers']})",
            response="throughput_rps",
            numerator={"driver": "asyncpg", **setting},
            denominator={"driver": "psycopg2", **setting},
            published_ratio=None if parameters.differences(**setting) else asyncpg / psycopg2,
            published_direction="greater",
            source=f"inference study, results table ({asyncpg:g} against {psycopg2:g} requests/s)",
            asks="" if place else "asyncpg faster than psycopg2?",
            subject="requests/s",
        )
        for place, setting in enumerate(_settings(parameters))
    ]


def _warnings(parameters: SyncVsAsyncParameters) -> list[Remark]:
    """Say how even the setting nearest to the study's differs from it."""
    nearest = min(_settings(parameters), key=lambda setting: len(parameters.differences(**setting)))
    return stacks.load_warnings(parameters, **nearest)


EXPERIMENT = Experiment(
    name="sync_vs_async",
    title="Drivers: psycopg2 in threads against asyncpg",
    question="Does a non-blocking driver alone raise throughput: at which distance from the "
    "database, with which pool, with how many workers?",
    parameters=SyncVsAsyncParameters,
    main_job={
        "pool_minconn": ["max"],
        "round_trip_ms": [0],
        "blocks": 6,
        **stacks.SHORT_TRIALS,
    },
    treatments=lambda parameters: stacks.with_room(
        [
            _treatment(parameters, driver, setting)
            for setting in _settings(parameters)
            for driver in BOTH
        ]
    ),
    contrasts=_contrasts,
    warnings=_warnings,
)
