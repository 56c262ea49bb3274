"""Does waiting for the commit's disk flush decide the throughput of an inference service?"""

from __future__ import annotations

from pydantic import Field

from perflab.recordings import Contrast, ContrastPair
from perflab.stacks.plan import RoundTripMs
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import COMMITS, Driver, InferenceParameters, published_rps
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

FACTOR, WRITE = "synchronous_commit", "database_write"
ON, OFF = {WRITE: "yes", FACTOR: "on"}, {WRITE: "yes", FACTOR: "off"}
# Without a write there is no commit that could wait.
NONE = {WRITE: "no", FACTOR: "none"}
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
    return stacks.treatment(parameters, levels, LABELS[levels[FACTOR]], plan, path)


def _contrasts(parameters: SynchronousCommitParameters) -> list[Contrast]:
    """Return the study's claims; their ratios are published for the study's own load only."""
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
    ]


EXPERIMENT = Experiment(
    name="synchronous_commit",
    title="Durability: synchronous_commit on, off, and no database write",
    question="How much throughput does waiting for the commit's disk flush cost, and how much the "
    "rest of the database write?",
    parameters=SynchronousCommitParameters,
    main_job={"blocks": 12, **stacks.SHORT_TRIALS},
    treatments=lambda parameters: stacks.with_room(
        [_treatment(parameters, levels) for levels in (ON, OFF, NONE)]
    ),
    contrasts=_contrasts,
    warnings=stacks.load_warnings,
)
