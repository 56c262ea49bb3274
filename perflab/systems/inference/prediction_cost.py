"""The CPU cost of one prediction, by the service's own code on the services' cores."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene, no_node
from perflab.load.workload import Workload
from perflab.stacks.plan import StackPlan

PROBE = "predict"


class PredictionCost(Instrument):
    """Runs the probe of an inference node before each load: ``prediction_cpu_us``.

    A compiled runtime adds ``compile_s``, the time to compile it, and ``compiler``.
    """

    node: str

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _PredictionCost(self.node, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node."""
        return no_node("prediction cost", self.node, stack)


class _PredictionCost(Look):
    def __init__(self, node: str, scene: Scene) -> None:
        self._node = node
        self._scene = scene
        self._result: dict[str, Any] = {}

    def before(self) -> None:
        """Run the probe."""
        instance = self._scene.instance(self._node)
        self._result = json.loads(instance.run(instance.launch.spec.probes[PROBE]))

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the columns."""
        result = self._result
        return Observation(
            {
                "prediction_cpu_us": float(result["prediction_cpu_us"]),
                "compile_s": float(result.get("compile_s", math.nan)),
                "compiler": " ".join(filter(None, [result.get("compiler"), result.get("flags")])),
            }
        )
