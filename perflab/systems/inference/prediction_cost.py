"""What one prediction costs in CPU, by the service's own code on the services' cores."""

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

    Of a compiled runtime also ``compile_s``, the time that its making took, and ``compiler``.
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
        self._told: dict[str, Any] = {}

    def before(self) -> None:
        """Probe."""
        instance = self._scene.instance(self._node)
        self._told = json.loads(instance.run(instance.launch.spec.probes[PROBE]))

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the columns."""
        told = self._told
        return Observation(
            {
                "prediction_cpu_us": float(told["prediction_cpu_us"]),
                "compile_s": float(told.get("compile_s", math.nan)),
                "compiler": " ".join(filter(None, [told.get("compiler"), told.get("flags")])),
            }
        )
