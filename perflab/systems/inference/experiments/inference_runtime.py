"""Does a faster inference runtime help while every request waits for a commit?"""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from perflab.instruments.instrument import Load, Observation, OfNode, Sensor
from perflab.recordings import Contrast
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.typed_rows import rows_of
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    STUDY,
    InferenceParameters,
    Runtime,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import Requests, WarmupRequests

CONTRASTS = rows_of(Path(__file__).with_suffix(".csv"), ContrastRow)


class InferenceRuntimeParameters(InferenceParameters):
    """Parameters of the runtime study; scikit-learn is slow, so its default load is smaller."""

    requests: Requests = 250
    warmup_requests: WarmupRequests = 1000
    runtime: tuple[Runtime, ...] = Field(
        default=("sklearn", "onnx"),
        min_length=1,
        description="levels to compare: sklearn, onnx, or compiled (C++ made from the model; on "
        "the backend process it needs a C++ compiler, so it is not among the defaults)",
    )


class _PredictionCost(Sensor["PredictionCost"]):
    def before(self) -> None:
        instance = self.scene.instance(self.settings.node)
        self._result = json.loads(instance.run(instance.launch.spec.probes["predict"]))

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        result = self._result
        return Observation(
            {
                "prediction_cpu_us": float(result["prediction_cpu_us"]),
                "compile_s": float(result.get("compile_s", math.nan)),
                "compiler": " ".join(filter(None, [result.get("compiler"), result.get("flags")])),
            }
        )


class PredictionCost(OfNode):
    """Runs the probe of an inference node before each load: ``prediction_cpu_us``.

    A compiled runtime adds ``compile_s``, the time to compile it, and ``compiler``.
    """

    at_work: ClassVar = _PredictionCost


def _treatments(parameters: InferenceRuntimeParameters) -> list[Treatment]:
    treatments = []
    for runtime, write in product(parameters.runtime, ("yes", "no")):
        levels, writes = {"runtime": runtime, "database_write": write}, write == "yes"
        path = stacks.endpoint("psycopg2", database_write=writes)
        plan = stacks.stack(
            parameters,
            pool_size=parameters.pool_size,
            workers=parameters.workers,
            runtime=runtime,
            writes=writes,
        )
        label = f"{runtime}, {'with' if writes else 'no'} database write"
        treatment = stacks.treatment(parameters, levels, label, plan, path)
        instruments = (*treatment.instruments, PredictionCost(node="inference"))
        treatments.append(treatment.model_copy(update={"instruments": instruments}))
    return treatments


def _contrasts(parameters: InferenceRuntimeParameters) -> list[Contrast]:
    """Return the contrasts whose runtimes the run has."""
    is_published = not parameters.differences()
    contrasts = [row.contrast(STUDY, sized=is_published) for row in CONTRASTS]
    return [
        contrast
        for contrast in contrasts
        if {contrast.numerator["runtime"], contrast.denominator["runtime"]}
        <= set(parameters.runtime)
    ]


EXPERIMENT = Experiment(
    name="inference_runtime",
    title="Runtime and database write, as an interaction",
    question="Does a faster inference runtime help while every request waits for a commit?",
    parameters=InferenceRuntimeParameters,
    treatments=lambda parameters: stacks.with_room(_treatments(parameters)),
    contrasts=_contrasts,
    warnings=stacks.load_warnings,
)
