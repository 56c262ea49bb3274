"""Does a faster inference runtime help while every request waits for a commit?"""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Annotated, ClassVar

from pydantic import Field

from perflab.instruments.instrument import Load, Look, Observation, OfNode
from perflab.recordings import Contrast, ContrastPair
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    COMMITS,
    InferenceParameters,
    OneOrMore,
    Runtime,
    published_rps,
)
from perflab.trials.experiment import Experiment, Requests, WarmupRequests
from perflab.trials.plan import Treatment


class InferenceRuntimeParameters(InferenceParameters):
    """Parameters of the runtime study; scikit-learn is slow, so its default load is smaller."""

    requests: Requests = 250
    warmup_requests: WarmupRequests = 1000
    runtime: Annotated[tuple[Runtime, ...], OneOrMore] = Field(
        default=("sklearn", "onnx"),
        min_length=1,
        description="levels to compare: sklearn, onnx, or compiled (C++ made from the model; on "
        "the backend process it needs a C++ compiler, so it is not among the defaults)",
    )


class _PredictionCost(Look["PredictionCost"]):
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
        plan = stacks.stack(parameters, workers=parameters.workers, runtime=runtime, writes=writes)
        label = f"{runtime}, {'with' if writes else 'no'} database write"
        treatment = stacks.treatment(parameters, levels, label, plan, path)
        instruments = (*treatment.instruments, PredictionCost(node="inference"))
        treatments.append(treatment.model_copy(update={"instruments": instruments}))
    return treatments


def _pair(runtime: str, baseline: str, write: str) -> dict[str, dict[str, str]]:
    return {
        "numerator": {"runtime": runtime, "database_write": write},
        "denominator": {"runtime": baseline, "database_write": write},
    }


def _contrasts(parameters: InferenceRuntimeParameters) -> list[Contrast]:
    without_write = published_rps(COMMITS["none"])
    with_write = published_rps(COMMITS["on"])
    contrasts = [
        Contrast(
            name="no write against write (onnx)",
            claim="without the database write throughput is more than three times as high",
            response="throughput_rps",
            numerator={"runtime": "onnx", "database_write": "no"},
            denominator={"runtime": "onnx", "database_write": "yes"},
            published_ratio=None if parameters.differences() else without_write / with_write,
            published_direction="greater",
            source=f"inference study, results table ({without_write:g} against {with_write:g} "
            "requests/s)",
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
        Contrast(
            name="compiled against sklearn with write",
            claim="compiled C++ does not raise throughput either while every request waits for a "
            "commit",
            response="throughput_rps",
            **_pair("compiled", "sklearn", "yes"),
            published_direction="none",
            source="inference study, claim 2 for the third of its runtimes",
        ),
        Contrast(
            name="compiled against onnx with write",
            claim="throughput of compiled C++ against ONNX Runtime, with the database write",
            response="throughput_rps",
            **_pair("compiled", "onnx", "yes"),
        ),
        Contrast(
            name="compiled against onnx, CPU of a prediction",
            claim="CPU time of a prediction, compiled C++ against ONNX Runtime",
            response="prediction_cpu_us",
            **_pair("compiled", "onnx", "no"),
        ),
    ]
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
