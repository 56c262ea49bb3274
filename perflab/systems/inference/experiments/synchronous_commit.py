"""Does waiting for the commit's disk flush decide the throughput of an inference service?"""

from __future__ import annotations

from itertools import product
from typing import Annotated

from pydantic import Field, PositiveFloat

from perflab.load.workload import OpenLoop, Stage
from perflab.recordings import Contrast, ContrastPair, published_value
from perflab.stacks.plan import RoundTripMs
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    COMMITS,
    STUDY,
    TABLE,
    Driver,
    InferenceParameters,
    OneOrMore,
    published_rps,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

FACTOR, WRITE = "synchronous_commit", "database_write"
ON, OFF = {WRITE: "yes", FACTOR: "on"}, {WRITE: "yes", FACTOR: "off"}
# Without a write there is no commit that could wait.
NONE = {WRITE: "no", FACTOR: "none"}
RATE = "rate"
# Throughput rises for so long after services start.
WARMUP_S = 3.0
LABELS = {"on": f"{FACTOR}=on", "off": f"{FACTOR}=off", "none": "no database write"}


class SynchronousCommitParameters(InferenceParameters):
    """Parameters of the durability study: which driver it uses, at which distance."""

    driver: Driver = Field(
        default="psycopg2",
        description="database driver: psycopg2, which blocks a thread, or asyncpg, which does not",
    )
    round_trip_ms: RoundTripMs = Field(
        default=0.0, description="delay that the link adds to a round trip to the database, in ms"
    )
    rate: Annotated[tuple[PositiveFloat, ...], OneOrMore, Field(min_length=1)] | None = Field(
        default=None,
        description="levels to compare: requests offered a second, whether or not answers come; "
        "none: users wait for their answers, as in the study",
    )


def _treatment(parameters: SynchronousCommitParameters, levels: dict[str, str]) -> Treatment:
    """Return the service that commits as the levels say, or that does not write at all."""
    writes = levels[WRITE] == "yes"
    plan = stacks.stack(
        parameters,
        workers=parameters.workers,
        # Without writes nothing is committed: the default does not matter.
        synchronous_commit=levels[FACTOR] if writes else "on",
        round_trip_ms=parameters.round_trip_ms,
        writes=writes,
    )
    path = stacks.endpoint(parameters.driver, database_write=writes)
    treatment = stacks.treatment(parameters, levels, LABELS[levels[FACTOR]], plan, path)
    return treatment if RATE not in levels else _offered(treatment, parameters.requests)


def _offered(treatment: Treatment, requests: int) -> Treatment:
    """Return the treatment with so many requests in an open loop, at the rate of its levels."""
    rate = treatment.levels[RATE]
    stage = Stage(rate=float(rate), duration_s=WARMUP_S + requests / float(rate))
    arrivals = OpenLoop(stages=(stage,), warmup_s=WARMUP_S)
    load = treatment.workload.model_copy(update={"arrivals": arrivals})
    return treatment.model_copy(update={"workload": load, "label": f"{treatment.label}, {rate}/s"})


def _treatments(parameters: SynchronousCommitParameters) -> list[Treatment]:
    rates: list[dict[str, str]] = [{RATE: f"{rate:.12g}"} for rate in sorted(parameters.rate or ())]
    return [
        _treatment(parameters, {**levels, **rate})
        for levels, rate in product((ON, OFF, NONE), rates or [{}])
    ]


def _at_rate(rate: str) -> Contrast:
    return Contrast(
        name=f"off against on at {rate}/s",
        claim=f"beyond the study: synchronous_commit=off shortens the p95 of {rate} requests/s",
        response="p95_ms",
        numerator={**OFF, RATE: rate},
        denominator={**ON, RATE: rate},
    )


def _contrasts(parameters: SynchronousCommitParameters) -> list[Contrast]:
    """Return the study's claims; their ratios are published for the study's own load only."""
    if parameters.rate:
        return [_at_rate(f"{rate:.12g}") for rate in sorted(parameters.rate)]
    is_published = not parameters.differences()
    on_rps, off_rps, bare_rps = (published_rps(row) for row in COMMITS.values())
    return [
        Contrast(
            name="off against on",
            claim="synchronous_commit=off raises throughput by about 60%",
            response="throughput_rps",
            numerator={FACTOR: "off"},
            denominator={FACTOR: "on"},
            published_ratio=off_rps / on_rps if is_published else None,
            published_direction="greater",
            source=f"inference study, results table ({off_rps:g} against {on_rps:g} requests/s)",
            asks="synchronous_commit=off faster?",
            subject="requests/s",
        ),
        Contrast(
            name="no write against on",
            claim="without the database write throughput is more than three times as high",
            response="throughput_rps",
            numerator=NONE,
            denominator=ON,
            published_ratio=bare_rps / on_rps if is_published else None,
            published_direction="greater",
            source=f"inference study, results table ({bare_rps:g} against {on_rps:g} requests/s)",
        ),
        Contrast(
            name="flush against the rest of the write",
            claim="waiting for the commit's flush takes more of the response time than the rest "
            "of the database write",
            response="mean_ms",
            scale="difference",
            numerator=ON,
            denominator=OFF,
            interaction=ContrastPair(numerator=OFF, denominator=NONE),
            published_direction="greater",
            source="inference study, claim 3 (the flush is the bottleneck)",
        ),
        *_of_time(is_published),
    ]


def _of_time(is_published: bool) -> list[Contrast]:
    """Return claims 1, 3 and 4 as shares of time; a published one counts at the study's load."""
    on_rps, off_rps, bare_rps = (published_rps(row) for row in COMMITS.values())
    with_write_ms, without_ms = (
        published_value(STUDY, TABLE, COMMITS[level], "mean_latency") for level in ("on", "none")
    )
    of_write = (1 / on_rps - 1 / off_rps) / (1 / on_rps - 1 / bare_rps)
    return [
        Contrast(
            name="claim 1",
            claim="database writes dominate end-to-end latency",
            response="mean_ms",
            scale="share",
            numerator=ON,
            denominator=NONE,
            published_difference=1 - without_ms / with_write_ms if is_published else None,
            published_direction="greater",
            limit=0.5,
            source="inference study, claim 1",
        ),
        Contrast(
            name="claim 3",
            claim="the commit's disk flush is the bottleneck",
            response="ms_per_answer",
            scale="share",
            numerator=ON,
            denominator=OFF,
            interaction=ContrastPair(numerator=ON, denominator=NONE),
            published_difference=of_write if is_published else None,
            published_direction="greater",
            limit=0.5,
            source="inference study, claim 3",
        ),
        Contrast(
            name="claim 4, CPU",
            claim="the system is not bound by CPU",
            response="busy_share_of_cores",
            scale="level",
            numerator=ON,
            denominator={},
            published_direction="smaller",
            limit=0.8,
            source="inference study, claim 4",
        ),
        Contrast(
            name="claim 4, I/O",
            claim="the system is bound by I/O",
            response="flush_share_of_waiting",
            scale="level",
            numerator=ON,
            denominator={},
            published_direction="greater",
            limit=0.5,
            source="inference study, claim 4",
        ),
    ]


EXPERIMENT = Experiment(
    name="synchronous_commit",
    title="Durability: synchronous_commit on, off, and no database write",
    question="How much throughput does waiting for the commit's disk flush cost, and how much the "
    "rest of the database write?",
    parameters=SynchronousCommitParameters,
    main_job={**stacks.SHORT_TRIALS, "blocks": 7},
    treatments=lambda parameters: stacks.with_room(_treatments(parameters)),
    contrasts=_contrasts,
    warnings=stacks.load_warnings,
)
