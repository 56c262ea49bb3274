"""Does waiting for the commit's disk flush decide the throughput of an inference service?"""

from __future__ import annotations

from pydantic import Field

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast
from perflab.systems.inference import service
from perflab.systems.inference.published_load import as_published, published_rps
from perflab.systems.inference.service import Driver, InferenceParameters, RoundTrip, Runtime
from perflab.trials.plan import Treatment

FACTOR = "synchronous_commit"


class SynchronousCommitParameters(InferenceParameters):
    """Parameters of the durability study: which driver and runtime it uses."""

    driver: Driver = Field(
        default="psycopg2",
        description="database driver: psycopg2, which blocks a thread, or asyncpg, which does not",
    )
    runtime: Runtime = Field(
        default="onnx", description="what computes the predictions: scikit-learn or ONNX Runtime"
    )
    round_trip_ms: RoundTrip = Field(
        default=0.0, description="delay that the link adds to a round trip to the database, in ms"
    )


def _treatments(parameters: SynchronousCommitParameters) -> list[Treatment]:
    load = service.workload(parameters, service.endpoint(parameters.driver))
    return [
        service.treatment(
            {FACTOR: level},
            f"synchronous_commit={level}",
            service.stack(
                parameters,
                runtime=parameters.runtime,
                synchronous_commit=level,
                round_trip_ms=parameters.round_trip_ms,
            ),
            load,
        )
        for level in ("on", "off")
    ]


def _contrasts(parameters: SynchronousCommitParameters) -> list[Contrast]:
    off, on = (published_rps(f"ONNX + DB, {FACTOR}={level}") for level in ("off", "on"))
    return [
        Contrast(
            name="off against on",
            claim="synchronous_commit=off raises throughput by about 60%",
            response="throughput_rps",
            numerator={FACTOR: "off"},
            denominator={FACTOR: "on"},
            published_ratio=off / on if as_published(parameters) else None,
            published_direction="greater",
            source=f"inference study, results table ({off:g} against {on:g} requests/s)",
        )
    ]


EXPERIMENT = Experiment(
    name="synchronous_commit",
    title="Durability: synchronous_commit on against off",
    question="How much throughput does waiting for the commit's disk flush cost?",
    parameters=SynchronousCommitParameters,
    in_main_job=True,
    treatments=_treatments,
    factors=lambda _: {FACTOR: ("on", "off")},
    contrasts=_contrasts,
    warnings=service.load_warnings,
)
