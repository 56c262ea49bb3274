"""Does waiting for the commit's disk flush decide the throughput of an inference service?"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PositiveFloat

from perflab.load.workload import OpenLoop, Stage
from perflab.recordings import Contrast, published_value
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.typed_rows import rows_of
from perflab.stacks.plan import RoundTripMs
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    COMMITS,
    STUDY,
    TABLE,
    Driver,
    InferenceParameters,
    published_rps,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

CONTRASTS = rows_of(Path(__file__).with_suffix(".csv"), ContrastRow)
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
    rate: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="levels to compare: requests offered a second, whether or not answers come; "
        "none: users wait for their answers, as in the study",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset; the durability study does not state its workers."""
        values = super().published_values()
        del values["workers"]
        return values

    def differences(self, **levels: Any) -> list[str]:
        """Return the differences of a run from the study; its sizes are those of 1 and 4 workers.

        Both were fixed before any run: Uvicorn's default, and the number of the driver study.
        """
        if self.workers == 1:
            levels = {"workers": type(self).model_fields["workers"].default, **levels}
        return super().differences(**levels)


def _treatment(parameters: SynchronousCommitParameters, levels: dict[str, str]) -> Treatment:
    """Return the service that commits as the levels say, or that does not write at all."""
    writes = levels[WRITE] == "yes"
    plan = stacks.stack(
        parameters,
        pool_size=parameters.pool_size,
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
    contrasts = [row.contrast(STUDY, sized=is_published) for row in CONTRASTS]
    shares = _published_shares() if is_published else {}
    return [
        contrast.model_copy(update={"published_difference": shares.get(contrast.name)})
        for contrast in contrasts
    ]


def _published_shares() -> dict[str, float]:
    """Return the share of time that claims 1 and 3 are about, from the published rows."""
    on_rps, off_rps, bare_rps = (published_rps(row) for row in COMMITS.values())
    with_write_ms, without_ms = (
        published_value(STUDY, TABLE, COMMITS[level], "mean_latency") for level in ("on", "none")
    )
    return {
        "claim 1": 1 - without_ms / with_write_ms,
        "claim 3": (1 / on_rps - 1 / off_rps) / (1 / on_rps - 1 / bare_rps),
    }


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
