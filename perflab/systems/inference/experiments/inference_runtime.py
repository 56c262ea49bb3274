"""Does a faster inference runtime help while every request waits for a commit?"""

from __future__ import annotations

from itertools import product

from pydantic import Field

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast, ContrastPair
from perflab.systems.inference import service
from perflab.systems.inference.published_load import as_published, published_rps
from perflab.systems.inference.service import Driver, InferenceParameters, RoundTrip
from perflab.trials.plan import Treatment

RUNTIMES = ("sklearn", "onnx")
WRITES = ("yes", "no")


class InferenceRuntimeParameters(InferenceParameters):
    """Parameters of the runtime study; scikit-learn is slow, so its default load is smaller."""

    requests: int = Field(
        default=250, ge=10, le=1_000_000, description="requests that count, in each trial"
    )
    warmup_requests: int = Field(
        default=60, ge=0, le=1_000_000, description="requests before them, recorded apart"
    )
    driver: Driver = Field(
        default="psycopg2",
        description="database driver: psycopg2, which blocks a thread, or asyncpg, which does not",
    )
    round_trip_ms: RoundTrip = Field(
        default=0.0, description="delay that the link adds to a round trip to the database, in ms"
    )


def _treatments(parameters: InferenceRuntimeParameters) -> list[Treatment]:
    treatments = []
    for runtime, write in product(RUNTIMES, WRITES):
        levels = {"runtime": runtime, "database_write": write}
        path = service.endpoint(parameters.driver, database_write=write == "yes")
        plan = service.stack(
            parameters,
            workers=parameters.workers,
            commit_delay_us=parameters.commit_delay_us,
            runtime=runtime,  # type: ignore[arg-type]
            round_trip_ms=parameters.round_trip_ms,
        )
        if write == "no":
            plan = service.without_count(plan)
        label = f"{runtime}, {'with' if write == 'yes' else 'no'} database write"
        treatments.append(
            service.treatment(levels, label, plan, service.workload(parameters, path))
        )
    return treatments


def _pair(runtime_of: str, over: str, write: str) -> dict[str, dict[str, str]]:
    return {
        "numerator": {"runtime": runtime_of, "database_write": write},
        "denominator": {"runtime": over, "database_write": write},
    }


def _contrasts(parameters: InferenceRuntimeParameters) -> list[Contrast]:
    more = published_rps("ONNX, no DB")
    less = published_rps("ONNX + DB, synchronous_commit=on")
    return [
        Contrast(
            name="no write against write (onnx)",
            claim="without the database write throughput is more than three times as high",
            response="throughput_rps",
            numerator={"runtime": "onnx", "database_write": "no"},
            denominator={"runtime": "onnx", "database_write": "yes"},
            published_ratio=more / less if as_published(parameters) else None,
            published_direction="greater",
            source=f"inference study, results table ({more:g} against {less:g} requests/s)",
        ),
        Contrast(
            name="onnx against sklearn with write",
            claim="a faster runtime does not raise throughput while every request waits "
            "for a commit",
            response="throughput_rps",
            **_pair("onnx", "sklearn", "yes"),
            published_direction="none",
            source="inference study, claim 2",
        ),
        Contrast(
            name="runtime x database write",
            claim="the runtime's effect is smaller with the database write than without it",
            response="throughput_rps",
            **_pair("onnx", "sklearn", "no"),
            interaction=ContrastPair(**_pair("onnx", "sklearn", "yes")),
            published_direction="greater",
            source="inference study, claim 2 as an interaction",
        ),
    ]


EXPERIMENT = Experiment(
    name="inference_runtime",
    title="Runtime and database write, as an interaction",
    question="Does a faster inference runtime help while every request waits for a commit?",
    parameters=InferenceRuntimeParameters,
    treatments=_treatments,
    factors=lambda _: {"runtime": RUNTIMES, "database_write": WRITES},
    contrasts=_contrasts,
    warnings=service.fixed_warnings,
)
