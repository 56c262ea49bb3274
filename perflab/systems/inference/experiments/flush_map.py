"""At which flush cost, workers and distance would the published ratios appear?

The lab can plant a pause before each flush (``commit_delay``), but a commit does not feel exactly
that pause: one pause serves all commits that arrive in it, and a commit that arrives during a flush
waits for that flush and then for its own. So the map uses the felt cost: the median commit phase
with commit on, less that with commit off in the same block, at the same workers and distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated

import pandas as pd
from pydantic import Field, model_validator

from perflab.analysis.evaluation import Finding
from perflab.analysis.starts import effect_of_run
from perflab.recordings import Contrast, Run
from perflab.statistics.in_words import counted
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    COMMITS,
    DRIVERS,
    Driver,
    LoadParameters,
    OneOrMore,
    RoundTrips,
    WorkerLevels,
    published_rps,
)
from perflab.trials.experiment import Experiment, Requests, WarmupRequests
from perflab.trials.plan import Treatment

CommitDelay = Annotated[int, Field(ge=0, le=100_000)]
PLACE = ("workers", "round_trip_ms")
# With synchronous_commit=off nobody waits for a flush, however long it takes.
NO_DELAY = "0"
FACTORS = ("commit_delay_us", "workers", "round_trip_ms")
PHASE = "phase_commit_p50_ms"
FLUSH, DRIVER = "off against on", "async against sync"
ROWS = {
    FLUSH: (COMMITS["off"], COMMITS["on"]),
    DRIVER: (DRIVERS["asyncpg"], DRIVERS["psycopg2"]),
}
INSIDE, OUTSIDE, NO_INTERVAL = "in the interval", "outside", "no interval"
# An interval that also holds "no effect" shows nothing.
WITH_NO_EFFECT = "in the interval, and so is no effect"
COLUMNS = [
    "ratio_of", "workers", "round_trip_ms", "set_ms", "felt_ms", "felt_low", "felt_high", "ratio",
    "low", "high", "n", "published", "published_is",
]  # fmt: skip


class FlushMapParameters(LoadParameters):
    """Parameters of the map: a delay planted before every flush, workers, and distance."""

    requests: Requests = 200
    warmup_requests: WarmupRequests = 50
    commit_delay_us: Annotated[tuple[CommitDelay, ...], OneOrMore] = Field(
        default=(0, 20_000, 100_000),
        min_length=1,
        description="levels to compare: pause that PostgreSQL makes before every flush, in us; "
        "one pause serves all commits that arrive in it",
    )
    workers: WorkerLevels = (1, 4)
    round_trip_ms: RoundTrips = (0.0, 5.0)

    @model_validator(mode="after")
    def _check_pools(self) -> FlushMapParameters:
        stacks.check_pool(self.pool_size, max(self.workers))
        return self


def _factors(parameters: FlushMapParameters) -> dict[str, tuple[str, ...]]:
    return {
        "driver": ("psycopg2", "asyncpg"),
        "synchronous_commit": ("on", "off"),
        "commit_delay_us": tuple(dict.fromkeys((NO_DELAY, *_delays(parameters)))),
        "workers": tuple(map(str, parameters.workers)),
        "round_trip_ms": tuple(f"{ms:.12g}" for ms in parameters.round_trip_ms),
    }


def _places(parameters: FlushMapParameters) -> Iterator[dict[str, str]]:
    factors = _factors(parameters)
    for chosen in product(*(factors[name] for name in PLACE)):
        yield dict(zip(PLACE, chosen, strict=True))


def _delays(parameters: FlushMapParameters) -> tuple[str, ...]:
    return tuple(map(str, parameters.commit_delay_us))


def _on(driver: str, delay: str, place: Mapping[str, str]) -> dict[str, str]:
    return {"driver": driver, "synchronous_commit": "on", "commit_delay_us": delay, **place}


def _off(place: Mapping[str, str]) -> dict[str, str]:
    return {**_on("psycopg2", NO_DELAY, place), "synchronous_commit": "off"}


def _treatments(parameters: FlushMapParameters) -> list[Treatment]:
    levels = []
    for place in _places(parameters):
        levels.append(_off(place))
        for delay in _delays(parameters):
            levels += [_on(driver, delay, place) for driver in ("psycopg2", "asyncpg")]
    return [_treatment(parameters, chosen) for chosen in levels]


def _treatment(parameters: FlushMapParameters, levels: Mapping[str, str]) -> Treatment:
    driver: Driver = "asyncpg" if levels["driver"] == "asyncpg" else "psycopg2"
    plan = stacks.stack(
        parameters,
        workers=int(levels["workers"]),
        commit_delay_us=int(levels["commit_delay_us"]),
        synchronous_commit=levels["synchronous_commit"],
        round_trip_ms=float(levels["round_trip_ms"]),
    )
    is_on = levels["synchronous_commit"] == "on"
    commit = f"on, +{int(levels['commit_delay_us']) / 1000:g} ms" if is_on else "off"
    label = f"{driver}, commit {commit}, {_words(levels)}"
    return stacks.treatment(parameters, levels, label, plan, stacks.endpoint(driver))


def _words(place: Mapping[str, str]) -> str:
    """Return workers and distance in words."""
    return f"{counted(int(place['workers']), 'worker')}, {place['round_trip_ms']} ms away"


def _contrasts(parameters: FlushMapParameters) -> list[Contrast]:
    contrasts = []
    for place, delay in product(_places(parameters), _delays(parameters)):
        on = _on("psycopg2", delay, place)
        compared = (
            ("off against on", "synchronous_commit off against on", _off(place)),
            ("async against sync", "asyncpg against psycopg2", _on("asyncpg", delay, place)),
        )
        for name, words, numerator in compared:
            contrasts.append(
                Contrast(
                    name=f"{name}, +{delay} us, {_words(place)}",
                    claim=f"beyond the study: {words} (flush + {delay} us, {_words(place)})",
                    response="throughput_rps",
                    numerator=numerator,
                    denominator=on,
                )
            )
    return contrasts


def flush_map(run: Run, findings: Sequence[Finding]) -> pd.DataFrame:
    """Return every cell of the map, for both ratios.

    Columns: ratio_of ("off against on" or "async against sync", of throughput), workers,
    round_trip_ms, set_ms (the pause planted before a flush), felt_ms with its 95% interval (the
    time that a commit felt of flush and pause), ratio with its 95% interval, n (blocks), published,
    and published_is (whether the published ratio lies in the interval).
    """
    rows = []
    for finding in findings:
        # The denominator (commit on, psycopg2) defines the cell.
        cell = {name: finding.contrast.denominator[name] for name in FACTORS}
        effect = finding.effect
        ratio_of = DRIVER if finding.contrast.name.startswith(DRIVER) else FLUSH
        above, below = (published_rps(row) for row in ROWS[ratio_of])
        low, high = (effect.low, effect.high) if effect else (math.nan, math.nan)
        rows.append(
            {
                "ratio_of": ratio_of,
                "workers": int(cell["workers"]),
                "round_trip_ms": float(cell["round_trip_ms"]),
                "set_ms": int(cell["commit_delay_us"]) / 1000,
                **felt_flush(run, cell),
                "ratio": effect.estimate if effect else math.nan,
                "low": low,
                "high": high,
                "n": effect.n if effect else 0,
                "published": above / below,
                "published_is": _where(above / below, low, high),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _where(published: float, low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return NO_INTERVAL
    if not low <= published <= high:
        return OUTSIDE
    return WITH_NO_EFFECT if low <= 1 <= high else INSIDE


def felt_flush(run: Run, cell: Mapping[str, str]) -> dict[str, float]:
    """Return the time that a commit of psycopg2 felt of flush and pause, in ms, over blocks."""
    place = {"driver": "psycopg2", **{name: cell[name] for name in PLACE}}
    on = _by_block(run, {**place, **cell, "synchronous_commit": "on"})
    added = on - _by_block(run, {**place, "synchronous_commit": "off"})
    if not added.notna().any():
        return dict.fromkeys(("felt_ms", "felt_low", "felt_high"), math.nan)
    effect = effect_of_run(run, added, scale="difference")
    return {"felt_ms": effect.estimate, "felt_low": effect.low, "felt_high": effect.high}


def _by_block(run: Run, levels: Mapping[str, str]) -> pd.Series[float]:
    trials = run.valid_trials()
    rows = trials[trials["treatment"].isin(run.record.selected(dict(levels)))]
    blocks = pd.RangeIndex(run.judged_blocks)
    if PHASE not in rows:
        return pd.Series(math.nan, index=blocks)
    return rows.set_index("block")[PHASE].astype(float).reindex(blocks)


EXPERIMENT = Experiment(
    name="flush_map",
    title="Where the published ratios would appear: flush cost, workers, distance",
    question="At which cost of a flush, with how many workers and at which distance from the "
    "database would the published ratios appear?",
    parameters=FlushMapParameters,
    treatments=lambda parameters: stacks.with_room(_treatments(parameters)),
    factors=_factors,
    contrasts=_contrasts,
)
